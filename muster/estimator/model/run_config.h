// How an Estimator runs: its model_dir, how often it saves and writes, which algorithm combines the workers, and which
// task this process is. TensorFlow's tf.estimator.RunConfig with its names and defaults; here, too, what TF_CONFIG sets
// is read automatically. A plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "muster/algo/choice/algorithm_choice.h"
#include "muster/cluster/identity/environment.h"
#include "muster/cluster/identity/task_config.h"
#include "muster/train/node/node.h"
#include "muster/train/session/session_config.h"

namespace muster {

// Seconds between checkpoints, if a config gives neither seconds nor steps.
inline constexpr double kSaveCheckpointsSecs = 600;

struct RunConfig {
  // Empty: TF_CONFIG's or --model_dir's, else a temporary folder, which the log names (a ps, which keeps no files, has
  // none; a chief of a cluster and an evaluator, whose folder others must find, are refused). If it differs from
  // theirs, that is an error.
  std::string model_dir;
  std::optional<uint64_t> seed;      // for torch's generators, set before the model is made; unset: unchanged
  int64_t save_summary_steps = 100;  // 0: never
  // Neither: every kSaveCheckpointsSecs; both: an error; 0: never (except at the end).
  std::optional<double> save_checkpoints_secs;
  std::optional<int64_t> save_checkpoints_steps;
  int keep_checkpoint_max = 5;  // 0: all
  double keep_checkpoint_every_n_hours = 10000;
  int64_t log_step_count_steps = 100;
  double session_creation_timeout_secs = 7200;
  SessionConfig session_config;
  bool log_device_placement = false;  // as session_config's: one of the two is enough
  // How the workers' updates are combined. If it names no rule that the algorithm has (server_rule, worker_rule), the
  // model function's optimizer is that rule.
  AlgorithmChoice algorithm;
  // Transport, patience, threads, precision on the wire.
  NodeOptions node;
  // Which task this process is. Unset: what TF_CONFIG says, read when the Estimator is made.
  std::optional<TaskConfig> task;
};

// Returns the config completed from the environment: `task` and `model_dir` are set (a temporary folder is made if need
// be), log_device_placement is session_config's. InvalidArgument (IsWrongConfiguration) naming the field, its value and
// what is accepted: TF_CONFIG's mistakes, two model_dirs, both ways of saving, a negative number, an evaluator whose
// index isn't 0.
absl::StatusOr<RunConfig> ResolveRunConfig(RunConfig config, const Environment& environment);

// For a resolved config; TensorFlow's names.
std::string TaskTypeOf(const RunConfig& config);  // "chief", "master", "worker", "ps", "evaluator"
int NumWorkerReplicas(const RunConfig& config);   // the chief among them; 0 for an evaluator
// "save_checkpoints_steps = 100", "save_checkpoints_secs = 600".
std::string CheckpointFrequencyText(const RunConfig& config);
// "model_dir = /m, seed = None, save_summary_steps = 100, …": the config in the log.
std::string RunConfigText(const RunConfig& config);

}  // namespace muster
