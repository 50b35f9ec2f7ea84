// A model with the values of a checkpoint, in this process and without a cluster: for Evaluate, Predict and
// VariableValue. Throws Error. Used by one thread.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <string>

#include "muster/checkpoint/checkpoint_reader.h"
#include "muster/estimator/model/model_fn.h"
#include "muster/estimator/model/run_config.h"
#include "muster/torch_bridge/module/module_source.h"

namespace muster {

struct OpenCheckpointOptions {
  std::string model_dir;
  std::string checkpoint_path;   // instead of the latest of model_dir
  bool verify_checksums = true;  // reads all of it while opening
};
// Opens a checkpoint. If it is deleted meanwhile because a newer one was saved, the newer one is opened. Throws Error:
// FailedPrecondition, there is none yet; NotFound, none at checkpoint_path; DataLoss, it is damaged.
std::unique_ptr<CheckpointReader> OpenCheckpoint(const OpenCheckpointOptions& options);

// The device on which this process computes outside of a session: the one that the config or the task asks for
// (RunConfig::node.device, --device). Throws Error: there is no such device, and the config doesn't allow another.
torch::Device DeviceOf(const RunConfig& config);

class CheckpointedModel {
 public:
  // Loads the checkpoint's values into the spec's module, on `device`, and sets it to evaluation mode. Logs the same
  // lines as TensorFlow when a session is restored. Throws Error: the checkpoint is of another model (names the
  // variable); the scaffold's local_init failed.
  CheckpointedModel(EstimatorSpec spec, const torch::Device& device, const CheckpointReader& checkpoint);

  // Runs the model on a batch that is on its device, without autograd. Throws Error: errors of the forward function and
  // of torch.
  ModelOutputs Run(const Minibatch& minibatch) const;

  const EstimatorSpec& spec() const { return spec_; }
  const torch::Device& device() const { return source_->device(); }
  int64_t global_step() const { return global_step_; }

 private:
  const EstimatorSpec spec_;
  std::unique_ptr<ModuleSource> source_;
  const int64_t global_step_;
};

}  // namespace muster
