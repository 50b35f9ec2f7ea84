#include "muster/torch_bridge/module/session_devices.h"

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/identity/compute_device.h"
#include "muster/torch_bridge/module/tensor_source.h"
#include "muster/torch_bridge/module/torch_status.h"
#include "muster/torch_bridge/module/torch_version.h"

namespace muster {
namespace {

void SetThreads(const SessionConfig& config) {
  if (const int threads = config.intra_op_parallelism_threads; threads > 0 && threads != at::get_num_threads()) {
    at::set_num_threads(threads);
    LogInfo("computes with ", threads, threads == 1 ? " thread" : " threads", " (the session's config says so)");
  }
  const int beside = config.inter_op_parallelism_threads;
  if (beside == 0 || beside == at::get_num_interop_threads()) return;
  const absl::Status set = CatchTorch("inter_op_parallelism_threads", [beside] {
    at::set_num_interop_threads(beside);
    return absl::OkStatus();
  });
  if (!set.ok())
    LogWarning("inter_op_parallelism_threads stays ", at::get_num_interop_threads(), " instead of ", beside,
               ": libtorch lets it be set once in a process, before its first use");
}

// Call it only in a process that computes on a GPU.
void SetGpuOptions(const GpuOptions& options) {
  if (!options.allow_growth.value_or(true))
    LogLineOnce(LogLevel::kInfo,
                "gpu_options.allow_growth = false has no effect: libtorch takes a GPU's memory as it needs it");
  const double fraction = options.per_process_gpu_memory_fraction;
  if (fraction == 0) return;
  const absl::Status limited = CatchTorch("gpu_options.per_process_gpu_memory_fraction", [fraction] {
    LimitGpuMemory(fraction);
    return absl::OkStatus();
  });
  if (!limited.ok())
    LogLineOnce(LogLevel::kWarning,
                absl::StrCat("this libtorch can't limit a GPU's memory, which stays unlimited: ", limited.message()));
}

}  // namespace

absl::Status PrepareDevices(Node& node, const SessionConfig& config, SessionEnvironment& environment) {
  RETURN_IF_ERROR(CheckSessionConfig(config));
  const ComputeDevice asked = node.asked_device();
  // CUDA isn't touched unless a GPU is requested.
  const int gpus = asked.gpu ? static_cast<int>(torch::cuda::device_count()) : 0;
  ASSIGN_OR_RETURN(const PlacedComputation placed,
                   PlaceComputation(asked, gpus, config.gpu_options.visible_device_list, config.allow_soft_placement));
  if (!placed.notice.empty()) LogWarning(placed.notice);
  SetThreads(config);
  torch::Device device = torch::kCPU;
  if (placed.device.gpu) {
    SetGpuOptions(config.gpu_options);
    device = torch::Device(torch::kCUDA, static_cast<torch::DeviceIndex>(placed.gpu));
    LogInfo("computes on ", placed.device.ToString(), ", which is GPU ", placed.gpu, " of this host");
  }
  auto* model = dynamic_cast<TensorSource*>(&environment.algorithm->source());
  if (model == nullptr && placed.device.gpu)
    return absl::UnimplementedError(
        absl::StrCat("the trained model has no tensors of torch, and can't compute on ", asked.ToString()));
  if (model != nullptr) RETURN_IF_ERROR(model->ComputeOn(device));
  node.ComputeOn(placed.device);
  environment.place.device = placed.device;
  return absl::OkStatus();
}

}  // namespace muster
