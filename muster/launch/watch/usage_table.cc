#include "muster/launch/watch/usage_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_format.h"
#include "muster/launch/output/aligned_lines.h"

namespace muster {
namespace {

constexpr std::array<const char*, 9> kUsageHeadings = {
    "ID", "PROJECT", "STATE", "CPU %", "MEM %", "MEM-Used / Total", "GPU %", "GPU-MEM %", "GPU-MEM Used/Total"};
constexpr std::array<const char*, 3> kProgressHeadings = {"STEPS/S", "LOSS", "STALENESS"};
constexpr size_t kLeftAligned = 3;  // columns with words
constexpr char kUnknownUsage[] = "-";
constexpr char kNoGpuUsage[] = "N/A";

std::string TenthsText(const std::optional<double>& number) {
  return number.has_value() ? absl::StrFormat("%.1f", *number) : kUnknownUsage;
}

double GibibytesOf(int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

std::string ShareText(int64_t used, int64_t total) {
  return total > 0 ? absl::StrFormat("%.1f", static_cast<double>(used) / static_cast<double>(total) * 100)
                   : kUnknownUsage;
}

// Keeps a small value from being shown as 0.0.
std::string LossText(const std::optional<double>& loss) {
  return loss.has_value() ? absl::StrFormat("%.4g", *loss) : kUnknownUsage;
}

void AddGpuCells(const TaskUsage& usage, std::vector<std::string>& cells) {
  if (usage.gpus == 0) {
    cells.insert(cells.end(), 3, kNoGpuUsage);
    return;
  }
  cells.push_back(usage.gpu_percent.has_value() ? TenthsText(usage.gpu_percent) : kNoGpuUsage);
  if (!usage.gpu_mem_bytes.has_value() || !usage.gpu_mem_total.has_value()) {
    cells.insert(cells.end(), 2, kNoGpuUsage);
    return;
  }
  cells.push_back(ShareText(*usage.gpu_mem_bytes, *usage.gpu_mem_total));
  cells.push_back(
      absl::StrFormat("%.1f / %.1f GB", GibibytesOf(*usage.gpu_mem_bytes), GibibytesOf(*usage.gpu_mem_total)));
}

std::vector<std::string> UsageCells(const UsageRow& row, bool with_progress) {
  std::vector<std::string> cells = {row.name, row.project, std::string(Name(row.state))};
  if (row.usage.has_value()) {
    const TaskUsage& usage = *row.usage;
    cells.push_back(TenthsText(usage.cpu_percent));
    cells.push_back(ShareText(usage.mem_bytes, usage.mem_limit));
    cells.push_back(absl::StrFormat("%.1f / %.1f GB", GibibytesOf(usage.mem_bytes), GibibytesOf(usage.mem_limit)));
    AddGpuCells(usage, cells);
  } else {
    cells.resize(kUsageHeadings.size(), kUnknownUsage);
  }
  if (with_progress) {
    cells.push_back(TenthsText(row.progress.steps_per_second));
    cells.push_back(LossText(row.progress.loss));
    cells.push_back(TenthsText(row.progress.staleness));
  }
  return cells;
}

template <typename T>
nlohmann::json JsonOf(const std::optional<T>& value) {
  return value.has_value() ? nlohmann::json(*value) : nlohmann::json();
}

}  // namespace

std::vector<std::string> UsageTable(const std::vector<UsageRow>& rows) {
  const bool with_progress =
      std::any_of(rows.begin(), rows.end(), [](const UsageRow& row) { return row.progress != TaskProgress(); });
  std::vector<std::vector<std::string>> cells = {{kUsageHeadings.begin(), kUsageHeadings.end()}};
  if (with_progress) cells[0].insert(cells[0].end(), kProgressHeadings.begin(), kProgressHeadings.end());
  for (const UsageRow& row : rows) cells.push_back(UsageCells(row, with_progress));
  return AlignedLines(std::move(cells), kLeftAligned);
}

std::string UsageJson(const std::vector<UsageRow>& rows, absl::Time now) {
  nlohmann::ordered_json tasks = nlohmann::ordered_json::array();
  for (const UsageRow& row : rows) {
    const TaskUsage usage = row.usage.value_or(TaskUsage());
    const auto bytes = [&row](int64_t value) {
      return row.usage.has_value() ? nlohmann::json(value) : nlohmann::json();
    };
    tasks.push_back({{"id", row.name},
                     {"project", row.project},
                     {"state", Name(row.state)},
                     {"cpu_percent", JsonOf(usage.cpu_percent)},
                     {"mem_bytes", bytes(usage.mem_bytes)},
                     {"mem_total", bytes(usage.mem_limit)},
                     {"gpus", usage.gpus},
                     {"gpu_percent", JsonOf(usage.gpu_percent)},
                     {"gpu_mem_bytes", JsonOf(usage.gpu_mem_bytes)},
                     {"gpu_mem_total", JsonOf(usage.gpu_mem_total)},
                     {"global_step", JsonOf(row.progress.step)},
                     {"steps_per_second", JsonOf(row.progress.steps_per_second)},
                     {"loss", JsonOf(row.progress.loss)},
                     {"staleness", JsonOf(row.progress.staleness)}});
  }
  const nlohmann::ordered_json all = {{"time", absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", now, absl::UTCTimeZone())},
                                      {"tasks", std::move(tasks)}};
  return all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace muster
