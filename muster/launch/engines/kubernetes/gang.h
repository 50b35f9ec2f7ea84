// How a job's pods are started together or not at all, by systems that a cluster may have. Pure, thread-safe.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "muster/launch/engines/kubernetes/yaml/yaml_text.h"
#include "muster/launch/hosts/kubernetes_setting.h"

namespace muster {

struct GangRequest {
  PodGang gang = PodGang::kNone;
  std::string name;  // of the job
  int pods = 1;      // all of them, the supervisor's, too
  std::string queue = "";
  absl::Duration start_timeout = absl::Minutes(10);
};

// Makes a pod a member.
void AddToGang(const GangRequest& request, OrderedJson& pod);
// Returns the PodGroup, without labels and owner; an empty value where there is none.
OrderedJson PodGroupOf(const GangRequest& request);
// Returns the API's group that a cluster with this gang offers; "" for none.
std::string ApiGroupOf(PodGang gang);

}  // namespace muster
