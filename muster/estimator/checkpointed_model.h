// A model with the values of a checkpoint, in this process and without a cluster: what Evaluate, Predict and
// VariableValue look at. Throws Error. Used by one thread.
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
  std::string checkpoint_path;   // of another one than the latest of model_dir
  bool verify_checksums = true;  // read all of it while opening
};
// A checkpoint that is retired while it is opened, as a newer one has come, is no error: the newer one is opened.
// Throws Error: FailedPrecondition, there is none yet; NotFound, none at checkpoint_path; DataLoss, it is damaged.
std::unique_ptr<CheckpointReader> OpenCheckpoint(const OpenCheckpointOptions& options);

// What this process computes on outside of a session: what the config or the task ask for (RunConfig::node.device,
// --device). Throws Error: there is no such device, and the config doesn't allow another.
torch::Device DeviceOf(const RunConfig& config);

class CheckpointedModel {
 public:
  // The spec's module gets the checkpoint's values, on `device`, and is in evaluation mode. Log lines as TensorFlow's
  // when a session is restored. Throws Error: the checkpoint is of another model (names the variable); the scaffold's
  // local_init failed.
  CheckpointedModel(EstimatorSpec spec, const torch::Device& device, const CheckpointReader& checkpoint);

  // Runs the model on a batch that is on its device, without autograd. Throws Error: what the forward function and
  // torch throw.
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
