#include "muster/launch/task/node_layout.h"

#include <filesystem>
#include <set>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

constexpr int kMostDevices = 64;

absl::Status CheckNodes(const NodeLayoutRequest& request) {
  if (request.nodes.empty()) return absl::InvalidArgumentError("--nodes: accepted is at least one name");
  std::set<std::string> seen;
  for (const std::string& node : request.nodes) {
    if (node.empty()) return absl::InvalidArgumentError("--nodes: a name is empty; accepted are h1,h2,…");
    if (!seen.insert(node).second)
      return absl::InvalidArgumentError(
          absl::StrCat("--nodes: '", node, "' is there twice; accepted are different ones"));
  }
  if (request.devices >= 1 && request.devices <= kMostDevices) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--devices ", request.devices, ": accepted are 1 to ", kMostDevices));
}

}  // namespace

absl::StatusOr<std::vector<PlacedTask>> PlaceByNode(const NodeLayoutRequest& request) {
  RETURN_IF_ERROR(CheckNodes(request));
  const std::string& root = request.nodes.front();
  const auto of_root = [&request](int wanted) { return wanted % request.devices; };
  std::vector<PlacedTask> servers = {{{kPsJob, 0}, root, of_root(3)}};
  std::vector<PlacedTask> trainers = {
      {{kMasterJob, 0}, root, of_root(0)}, {{kWorkerJob, 0}, root, of_root(1)}, {{kWorkerJob, 1}, root, of_root(2)}};
  for (size_t node = 1; node < request.nodes.size(); ++node) {
    servers.push_back({{kPsJob, static_cast<int>(node)}, request.nodes[node], 0});
    for (int device = 0; device < request.devices; ++device) {
      // The first trainer is the master, which is no worker.
      const int index = static_cast<int>(trainers.size()) - 1;
      trainers.push_back({{kWorkerJob, index}, request.nodes[node], device});
    }
  }
  servers.insert(servers.end(), trainers.begin(), trainers.end());
  return servers;
}

std::string VisibleDevice(int device, const std::string& visible) {
  const std::vector<std::string> names = absl::StrSplit(visible, ',', absl::SkipWhitespace());
  if (names.empty()) return absl::StrCat(device);
  return names[static_cast<size_t>(device) % names.size()];
}

int CountGpus(const std::string& driver) {
  std::error_code none;
  int count = 0;
  for (std::filesystem::directory_iterator gpu(driver, none), end; !none && gpu != end; gpu.increment(none)) ++count;
  return count;
}

}  // namespace muster
