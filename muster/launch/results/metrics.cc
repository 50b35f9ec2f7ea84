#include "muster/launch/results/metrics.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/base/log.h"
#include "muster/summary/event_file_reader.h"

namespace muster {
namespace {

constexpr char kMetricsFile[] = "metrics.json";
constexpr char kMetricLinesFile[] = "metrics.jsonl";
// Limit for metrics.json, and for the part of metrics.jsonl that is read, from its end: any object of numbers is
// smaller.
constexpr uint64_t kMostMetricBytes = 4 << 20;
// Deepest folder below an OUTPUT_DIR that is searched: results don't lie deeper, but a program's data set may.
constexpr int kMostMetricFolders = 16;

using MetricMap = std::map<std::string, ResultMetric>;

// Reads the event files of one folder. A scalar's later event replaces an earlier one even in another file, because a
// restarted task writes a new one.
void ReadMetricEvents(const std::vector<std::string>& paths, const std::string& prefix, MetricMap& metrics) {
  std::map<std::string, double> times;
  for (const std::string& path : paths) {
    const absl::Status read = ReadEventFile(PosixFileSystem(), path, [&](const SummaryEvent& event) {
      for (const auto& [tag, value] : event.scalars) {
        const auto [last, is_new] = times.try_emplace(tag, event.wall_time);
        if (!is_new && event.wall_time < last->second) continue;
        last->second = event.wall_time;
        metrics[prefix + tag] = {.value = value, .step = event.step};
      }
    });
    if (!read.ok()) LogWarning(read.message());
  }
}

void AddMetricObject(const nlohmann::json& object, const std::string& prefix, MetricMap& metrics) {
  int64_t step = -1;
  for (const char* name : {"global_step", "step"}) {
    const auto member = object.find(name);
    if (member != object.end() && member->is_number_integer() && step < 0) step = member->get<int64_t>();
  }
  for (const auto& [name, value] : object.items()) {
    if (!value.is_number() || name == "global_step" || name == "step" || name == "wall_time") continue;
    metrics[prefix + name] = {.value = value.get<double>(), .step = step};
  }
}

// Returns the last `kMostMetricBytes` of a file; empty if it can't be read.
std::string MetricFileEnd(const std::string& path) {
  const uint64_t size = PosixFileSystem().FileSize(path).value_or(0);
  std::string text(std::min(size, kMostMetricBytes), '\0');
  if (!PosixFileSystem().ReadAt(path, size - text.size(), AsMutableBytes(text.data(), text.size())).ok()) return "";
  return text;
}

void ReadMetricObjects(const std::filesystem::path& folder, const std::string& prefix, MetricMap& metrics) {
  std::string lines = MetricFileEnd(folder / kMetricLinesFile);
  // If the last line is half written, the one before it counts.
  while (!lines.empty()) {
    const size_t end = lines.find_last_not_of("\r\n");
    lines.resize(end == std::string::npos ? 0 : end + 1);
    const size_t begin = lines.rfind('\n') == std::string::npos ? 0 : lines.rfind('\n') + 1;
    const auto object = nlohmann::json::parse(std::string_view(lines).substr(begin), nullptr, false);
    if (object.is_object()) {
      AddMetricObject(object, prefix, metrics);
      break;
    }
    lines.resize(begin);
  }
  const auto object = nlohmann::json::parse(MetricFileEnd(folder / kMetricsFile), nullptr, false);
  if (object.is_object()) AddMetricObject(object, prefix, metrics);
}

void ReadMetricFolder(const std::filesystem::path& folder, const std::string& prefix, int depth, MetricMap& metrics) {
  std::vector<std::string> event_files, folders;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    std::error_code unknown;
    // Skips links to folders, which may lead to a folder above.
    if (entry->is_directory(unknown) && !entry->is_symlink(unknown)) folders.push_back(name);
    if (entry->is_regular_file(unknown) && IsEventFileName(name)) event_files.push_back(entry->path());
  }
  std::sort(event_files.begin(), event_files.end());
  ReadMetricEvents(event_files, prefix, metrics);
  ReadMetricObjects(folder, prefix, metrics);
  if (depth == kMostMetricFolders) return;
  for (const std::string& name : folders)
    ReadMetricFolder(folder / name, absl::StrCat(prefix, name, "/"), depth + 1, metrics);
}

}  // namespace

std::map<std::string, ResultMetric> ReadMetrics(const std::string& output_dir) {
  MetricMap metrics;
  ReadMetricFolder(output_dir, "", 0, metrics);
  return metrics;
}

}  // namespace muster
