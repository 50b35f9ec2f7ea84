// Any text as TF_CONFIG, as the flags, as a device string and as an address gives an error of one line, or a value that
// is unchanged when written and read again.
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "muster/base/check.h"
#include "muster/cluster/address.h"
#include "muster/cluster/device.h"
#include "muster/cluster/identity/task_config.h"
#include "muster/cluster/placement/placement_text.h"

namespace muster {
namespace {

void CheckError(const absl::Status& status) {
  MUSTER_CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  MUSTER_CHECK(!status.message().empty());
}

void CheckConfig(const absl::StatusOr<TaskConfig>& config) {
  if (!config.ok()) return CheckError(config.status());
  const absl::StatusOr<ClusterSpec> again = ClusterSpec::FromJson(config->cluster().ToJson());
  MUSTER_CHECK(again.ok() && *again == config->cluster());
  MUSTER_CHECK(config->is_evaluator() == (config->global_id() < 0));
  MUSTER_CHECK(config->cluster().empty() || config->cluster().HasTask(config->task()));
  MUSTER_CHECK(config->distributed() == !config->master().empty());
}

void CheckDevice(const absl::StatusOr<DeviceSpec>& device) {
  if (!device.ok()) return CheckError(device.status());
  const absl::StatusOr<DeviceSpec> again = DeviceSpec::Parse(device->ToString());
  MUSTER_CHECK(again.ok() && *again == *device);
  MUSTER_CHECK(device->MergedWith(*device) == *device);
}

void CheckAddress(const absl::StatusOr<HostPort>& address) {
  if (!address.ok()) return CheckError(address.status());
  const absl::StatusOr<HostPort> again = ParseHostPort(address->ToString());
  MUSTER_CHECK(again.ok() && *again == *address);
}

}  // namespace
}  // namespace muster

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  muster::CheckConfig(muster::ResolveTaskConfig({.tf_config = text}));
  std::vector<std::string> arguments = absl::StrSplit(text, '\n');
  muster::CheckConfig(muster::TaskConfig::FromArguments(arguments, {}));
  muster::CheckDevice(muster::DeviceSpec::Parse(text));
  muster::CheckAddress(muster::ParseHostPort(text));
  const auto variables = muster::VariablesFromJson(text, "fuzz");
  if (!variables.ok()) muster::CheckError(variables.status());
  return 0;
}
