#include "muster/estimator/checkpointed_model.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/torch_bridge/module/load_checkpoint.h"
#include "muster/torch_bridge/module/torch_status.h"
#include "muster/train/threads/error.h"

namespace muster {
namespace {

std::string LatestCheckpointOrThrow(const std::string& model_dir) {
  const std::optional<std::string> latest =
      ValueOrThrow(LatestCheckpoint(PosixFileSystem(), model_dir, {.verify_checksums = false}));
  if (!latest)
    throw Error(absl::FailedPreconditionError(
        absl::StrCat("Could not find trained model in model_dir: ", model_dir,
                     ". There is no checkpoint in it yet: train first, or give a checkpoint_path")));
  return *latest;
}

}  // namespace

std::unique_ptr<CheckpointReader> OpenCheckpoint(const OpenCheckpointOptions& options) {
  FileSystem& files = PosixFileSystem();
  const CheckpointReader::Options how{.verify_checksums = options.verify_checksums};
  if (!options.checkpoint_path.empty())
    return ValueOrThrow(
        CheckpointReader::Open(files, ValueOrThrow(FindCheckpoint(files, options.checkpoint_path)), how));
  for (std::string path = LatestCheckpointOrThrow(options.model_dir);;) {
    absl::StatusOr<std::unique_ptr<CheckpointReader>> checkpoint = CheckpointReader::Open(files, path, how);
    const std::string newer = checkpoint.ok() ? path : LatestCheckpointOrThrow(options.model_dir);
    if (newer == path) return ValueOrThrow(std::move(checkpoint));
    path = newer;
  }
}

torch::Device DeviceOf(const RunConfig& config) {
  const ComputeDevice asked = config.node.device ? *config.node.device : config.task->device();
  // CUDA isn't touched unless a GPU is requested.
  const int gpus = asked.gpu ? static_cast<int>(torch::cuda::device_count()) : 0;
  const SessionConfig& session = config.session_config;
  const PlacedComputation placed = ValueOrThrow(
      PlaceComputation(asked, gpus, session.gpu_options.visible_device_list, session.allow_soft_placement));
  if (!placed.notice.empty()) LogLineOnce(LogLevel::kWarning, placed.notice);
  if (!placed.device.gpu) return torch::kCPU;
  return {torch::kCUDA, static_cast<torch::DeviceIndex>(placed.gpu)};
}

CheckpointedModel::CheckpointedModel(EstimatorSpec spec, const torch::Device& device,
                                     const CheckpointReader& checkpoint)
    : spec_(std::move(spec)), global_step_(checkpoint.manifest().global_step) {
  LogInfo("Graph was finalized.");
  LogInfo("Restoring parameters from ", checkpoint.path());
  source_ = ValueOrThrow(ModuleSource::Create(spec_.module));
  ThrowIfError(source_->ComputeOn(device));
  ThrowIfError(LoadCheckpoint(*source_, checkpoint));
  LogInfo("Running local_init_op.");
  if (spec_.scaffold && spec_.scaffold->options().local_init) ThrowIfError(spec_.scaffold->options().local_init());
  LogInfo("Done running local_init_op.");
  spec_.module->eval();
}

ModelOutputs CheckpointedModel::Run(const Minibatch& minibatch) const {
  const torch::NoGradGuard no_grad;
  return ValueOrThrow(CatchTorch("the model's forward function",
                                 [&]() -> absl::StatusOr<ModelOutputs> { return spec_.forward(minibatch); }));
}

}  // namespace muster
