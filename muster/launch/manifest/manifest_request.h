// What `muster manifest` turns into YAML for Kubernetes: the roles of a run, and how their pods are to be. Plain
// values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "muster/launch/task/resources.h"
#include "muster/launch/task/restart_policy.h"

namespace muster {

enum class ManifestForm {
  kJobSet,  // one JobSet, which ends the ps when chief and workers have succeeded
  kJob,     // an indexed Job for each role, and a headless Service
  kTfJob,   // Kubeflow's TFJob, whose operator writes TF_CONFIG
};

// How tasks learn who they are.
enum class TaskNaming { kTfConfig, kTorchrun, kAlone };

// The tasks of one job of the cluster: a container each, alike but for their index.
struct ManifestRole {
  std::string job;  // as TF_CONFIG calls it: "ps", "chief", "master", "worker", "evaluator"
  int count = 1;
  Resources resources;
  RestartPolicy restart;
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;  // values are taken as they are; names are unique
};

// A PersistentVolumeClaim that every task sees.
struct ManifestClaim {
  std::string name;
  std::string path;  // absolute
  bool read_only = false;
};

struct ManifestToleration {
  std::string key;
  std::optional<std::string> value;  // unset: whatever it is
  std::string effect;                // empty: all
};

struct ManifestUser {
  int64_t user = 0;
  int64_t group = 0;  // also of the files of claims
};

struct ManifestRequest {
  ManifestForm form = ManifestForm::kJobSet;
  std::string name;        // of the objects; a DNS label
  std::string name_space;  // empty: kubectl's own
  std::string image;
  TaskNaming naming = TaskNaming::kTfConfig;
  std::vector<ManifestRole> roles;  // in the order in which they are written
  std::string model_dir;            // goes into TF_CONFIG if not empty; not with a TFJob
  std::string token;                // of the job; goes into a Secret of its own unless token_secret is given
  std::string token_secret;         // a Secret that exists
  std::string token_key = "token";  // in the Secret
  std::vector<ManifestClaim> claims;
  std::map<std::string, std::string> annotations;  // of the pods
  std::map<std::string, std::string> labels;       // of all objects and the pods
  std::map<std::string, std::string> node_selector;
  std::vector<ManifestToleration> tolerations;
  std::string service_account;
  std::string pull_secret;
  std::string gpu_resource = "nvidia.com/gpu";
  std::string work_folder;           // empty: the image's own
  std::optional<int64_t> shm_bytes;  // of /dev/shm; unset: half of a task's memory
  std::optional<ManifestUser> user;  // unset: the image's own
  absl::Duration stop_grace = absl::Seconds(30);
};

}  // namespace muster
