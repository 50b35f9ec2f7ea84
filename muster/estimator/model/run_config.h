// How an Estimator runs: where its model_dir is, how often it saves and writes, which algorithm combines the workers,
// and who this process is. TensorFlow's tf.estimator.RunConfig with its names and defaults; what TF_CONFIG sets there
// is read by itself here too. A plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/algo/choice/algorithm_choice.h"
#include "muster/cluster/identity/environment.h"
#include "muster/cluster/identity/task_config.h"
#include "muster/train/node/node.h"
#include "muster/train/session/session_config.h"

namespace muster {

// Between checkpoints, where a config says neither seconds nor steps.
inline constexpr double kSaveCheckpointsSecs = 600;

struct RunConfig {
  // Empty: TF_CONFIG's or --model_dir's, else a temporary folder, which the log names (a ps, which keeps no files, has
  // none). Another one than theirs is an error.
  std::string model_dir;
  std::optional<uint64_t> seed;  // of torch's generators, set before the model is made; unset: they stay as they are
  int64_t save_summary_steps = 100;  // 0: never
  // Neither: every kSaveCheckpointsSecs; both: an error; 0: never (but at the end).
  std::optional<double> save_checkpoints_secs;
  std::optional<int64_t> save_checkpoints_steps;
  int keep_checkpoint_max = 5;  // 0: all
  double keep_checkpoint_every_n_hours = 10000;
  int64_t log_step_count_steps = 100;
  double session_creation_timeout_secs = 7200;
  SessionConfig session_config;
  bool log_device_placement = false;  // as session_config's: either is enough
  // How the workers' updates are combined. Where it names no rule that the algorithm has (server_rule, worker_rule),
  // the model function's optimizer is that rule.
  AlgorithmChoice algorithm;
  // Transport, patience, threads, precision on the wire.
  NodeOptions node;
  // Who this process is. Unset: what TF_CONFIG says, read when the Estimator is made.
  std::optional<TaskConfig> task;
};

// The config with everything filled in that the environment says: `task` and `model_dir` are set (a temporary folder is
// made if need be), log_device_placement is session_config's. InvalidArgument (IsWrongConfiguration) naming the field,
// its value and what is accepted: TF_CONFIG's mistakes, two model_dirs, both ways of saving, a negative number, an
// evaluator whose index isn't 0.
absl::StatusOr<RunConfig> ResolveRunConfig(RunConfig config, const Environment& environment);

// Of a resolved one; TensorFlow's names.
std::string TaskTypeOf(const RunConfig& config);  // "chief", "master", "worker", "ps", "evaluator"
int NumWorkerReplicas(const RunConfig& config);   // the chief among them; 0 for an evaluator
// "save_checkpoints_steps = 100", "save_checkpoints_secs = 600".
std::string CheckpointFrequencyText(const RunConfig& config);
// "model_dir = /m, seed = None, save_summary_steps = 100, …": what the log says of it.
std::string RunConfigText(const RunConfig& config);

}  // namespace muster
