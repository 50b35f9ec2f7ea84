#include "muster/launch/watch/progress.h"

#include <httplib.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"

namespace muster {
namespace {

constexpr auto kPageAnswersWithin = std::chrono::milliseconds(200);

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

TaskProgress ReadProgress(const std::string& status_address) {
  const size_t colon = status_address.rfind(':');
  int port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(status_address.substr(colon + 1), &port)) return {};
  httplib::Client page(status_address.substr(0, colon), port);
  page.set_connection_timeout(kPageAnswersWithin);
  page.set_read_timeout(kPageAnswersWithin);
  page.set_write_timeout(kPageAnswersWithin);
  const httplib::Result answer = page.Get("/status");
  return answer && answer->status == 200 ? ProgressOfStatus(answer->body) : TaskProgress();
}

}  // namespace muster
