#include "muster/launch/watch/progress.h"

#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "muster/launch/watch/page_reader.h"

namespace muster {
namespace {

std::optional<double> NumberAt(const nlohmann::json& object, const char* key) {
  const auto member = object.find(key);
  if (member == object.end() || !member->is_number()) return std::nullopt;
  return member->get<double>();
}

// A worker reports {median, p99}, a ps [pushes with staleness 0, 1, …].
std::optional<double> MedianStaleness(const nlohmann::json& staleness) {
  if (staleness.is_object()) return NumberAt(staleness, "median");
  if (!staleness.is_array()) return std::nullopt;
  double all = 0;
  for (const nlohmann::json& count : staleness) all += count.is_number() ? count.get<double>() : 0;
  if (all == 0) return std::nullopt;
  double passed = 0;
  int value = 0;
  for (const nlohmann::json& count : staleness) {
    passed += count.is_number() ? count.get<double>() : 0;
    if (2 * passed >= all) break;
    ++value;
  }
  return value;
}

}  // namespace

TaskProgress ProgressOfStatus(std::string_view json) {
  const nlohmann::json status = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!status.is_object()) return {};
  TaskProgress progress;
  progress.steps_per_second = NumberAt(status, "steps_per_second");
  progress.loss = NumberAt(status, "loss");
  if (const auto staleness = status.find("staleness"); staleness != status.end())
    progress.staleness = MedianStaleness(*staleness);
  if (const auto step = status.find("global_step"); step != status.end() && step->is_number_integer())
    progress.step = step->get<int64_t>();
  return progress;
}

TaskProgress ReadProgress(const std::string& status_address, absl::Duration patience) {
  const absl::StatusOr<std::string> page = ReadPage(status_address, "/status", {.patience = patience});
  return page.ok() ? ProgressOfStatus(*page) : TaskProgress();
}

}  // namespace muster
