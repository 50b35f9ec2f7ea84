#include "muster/train/session/session_config.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/cluster/identity/compute_device.h"
#include "muster/cluster/placement/device_filters.h"

namespace muster {
namespace {

absl::Status CheckThreads(const char* field, int threads) {
  if (threads >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("config.", field, " is ", threads, "; accepted: 0, which leaves them as they are, or more"));
}

absl::Status CheckFields(const SessionConfig& config) {
  const double fraction = config.gpu_options.per_process_gpu_memory_fraction;
  if (!(fraction >= 0 && fraction <= 1))
    return absl::InvalidArgumentError(absl::StrCat("config.gpu_options.per_process_gpu_memory_fraction is ", fraction,
                                                   "; accepted: 0 (no limit) to 1"));
  RETURN_IF_ERROR(ParseGpuList(config.gpu_options.visible_device_list).status());
  RETURN_IF_ERROR(CheckThreads("intra_op_parallelism_threads", config.intra_op_parallelism_threads));
  RETURN_IF_ERROR(CheckThreads("inter_op_parallelism_threads", config.inter_op_parallelism_threads));
  return DeviceFilters::Parse(config.device_filters).status();
}

}  // namespace

absl::Status CheckSessionConfig(const SessionConfig& config) {
  absl::Status wrong = CheckFields(config);
  return wrong.ok() ? wrong : AsWrongConfiguration(std::move(wrong));
}

std::vector<std::string> DefaultDeviceFilters(const TaskId& task) {
  if (task.job == kMasterJob || task.job == kChiefJob) return {"/job:ps", absl::StrCat("/job:", task.job)};
  if (task.job == kWorkerJob) return {"/job:ps", task.ToDevice()};
  if (task.job == kPsJob) return {"/job:ps", "/job:worker", "/job:chief", "/job:master"};
  return {};
}

}  // namespace muster
