// `muster device`: the canonical form of device strings, merged from left (outer) to right (inner), as a JSON string.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/muster/commands/command_table.h"
#include "apps/muster/terminal/usage_error.h"
#include "muster/cluster/device.h"

namespace muster {
namespace {

constexpr char kDeviceDescription[] = "Show the canonical form of device strings";

constexpr char kDeviceFooter[] = R"(
Several strings are merged as nested scopes are: outer first, the innermost set field wins.

Examples:
  muster device job:ps/task:1 /cpu:0                  "/job:ps/task:1/device:CPU:0"
  muster device /job:worker/device:GPU:* /device:GPU:2  "/job:worker/device:GPU:2"

Prints the canonical form as a JSON string. A mistake is one line on stderr and exit code 2.)";

int ShowDevice(const std::vector<std::string>& strings) {
  DeviceSpec merged;
  for (const std::string& text : strings) {
    absl::StatusOr<DeviceSpec> device = DeviceSpec::Parse(text);
    if (!device.ok()) return UsageError("device", device.status());
    merged = merged.MergedWith(*device);
  }
  nlohmann::json json = merged.ToString();
  std::printf("%s\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  return 0;
}

}  // namespace

void AddDeviceCommand(CLI::App& app, int& exit_code) {
  auto strings = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("device", kDeviceDescription);
  command->add_option("STRING", *strings, "Device strings, outer to inner")->required()->type_name("");
  command->footer(kDeviceFooter);
  command->callback([strings, &exit_code] { exit_code = ShowDevice(*strings); });
}

}  // namespace muster
