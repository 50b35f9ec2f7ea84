#include "muster/launch/watch/usage_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_format.h"
#include "muster/launch/output/aligned_lines.h"

namespace muster {
namespace {

enum UsageColumn : size_t {
  kIdColumn,
  kProjectColumn,
  kStateColumn,
  kCpuColumn,
  kMemoryShareColumn,
  kMemoryColumn,
  kGpuColumn,
  kGpuMemoryShareColumn,
  kGpuMemoryColumn,
  kStepsColumn,
  kLossColumn,
  kStalenessColumn,
  kUsageColumns
};

constexpr std::array<const char*, kUsageColumns> kUsageHeadings = {
    "ID",      "PROJECT", "STATE",    "CPU %", "MEM %", "MEM-Used / Total", "GPU %", "GPU-MEM %", "GPU-MEM Used/Total",
    "STEPS/S", "LOSS",    "STALENESS"};
constexpr std::array<const char*, kUsageColumns> kShortUsageHeadings = {
    "ID", "PROJECT", "STATE", "CPU %", "MEM %", "MEM GB", "GPU %", "GMEM %", "GMEM GB", "STEPS/S", "LOSS", "STALE"};
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

// `total` 0: unknown, as on a host.
std::string UsedText(int64_t used, int64_t total, bool brief) {
  if (total == 0) return absl::StrFormat("%.1f%s", GibibytesOf(used), brief ? "" : " GB");
  return brief ? absl::StrFormat("%.1f/%.1f", GibibytesOf(used), GibibytesOf(total))
               : absl::StrFormat("%.1f / %.1f GB", GibibytesOf(used), GibibytesOf(total));
}

// Keeps a small value from being shown as 0.0.
std::string LossText(const std::optional<double>& loss) {
  return loss.has_value() ? absl::StrFormat("%.4g", *loss) : kUnknownUsage;
}

void AddGpuCells(const TaskUsage& usage, bool brief, std::vector<std::string>& cells) {
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
  cells.push_back(UsedText(*usage.gpu_mem_bytes, *usage.gpu_mem_total, brief));
}

std::vector<std::string> UsageCells(const UsageRow& row, bool brief) {
  std::vector<std::string> cells = {row.name, row.project, std::string(Name(row.state))};
  if (row.usage.has_value()) {
    const TaskUsage& usage = *row.usage;
    cells.push_back(TenthsText(usage.cpu_percent));
    cells.push_back(ShareText(usage.mem_bytes, usage.mem_limit));
    cells.push_back(UsedText(usage.mem_bytes, usage.mem_limit, brief));
    AddGpuCells(usage, brief, cells);
  } else {
    cells.resize(kStepsColumn, kUnknownUsage);
  }
  cells.push_back(TenthsText(row.progress.steps_per_second));
  cells.push_back(LossText(row.progress.loss));
  cells.push_back(TenthsText(row.progress.staleness));
  return cells;
}

struct UsageColumns {
  void Drop(const std::vector<UsageColumn>& dropped) {
    for (const UsageColumn column : dropped) shown[column] = false;
  }

  std::array<bool, kUsageColumns> shown = {true, true, true, true, true, true, true, true, true, true, true, true};
  bool short_headings = false;
};

std::vector<std::string> UsageLines(const std::vector<UsageRow>& rows, const UsageColumns& columns) {
  const auto& headings = columns.short_headings ? kShortUsageHeadings : kUsageHeadings;
  std::vector<std::vector<std::string>> all = {{headings.begin(), headings.end()}};
  for (const UsageRow& row : rows) all.push_back(UsageCells(row, columns.short_headings));
  size_t left_aligned = 0;
  for (size_t column = 0; column <= kStateColumn; ++column) left_aligned += columns.shown[column] ? 1 : 0;
  std::vector<std::vector<std::string>> cells;
  for (const auto& row : all) {
    std::vector<std::string>& kept = cells.emplace_back();
    for (size_t column = 0; column < kUsageColumns; ++column)
      if (columns.shown[column]) kept.push_back(row[column]);
  }
  return AlignedLines(std::move(cells), left_aligned);
}

size_t WidestOf(const std::vector<std::string>& lines) {
  size_t widest = 0;
  for (const std::string& line : lines) widest = std::max(widest, line.size());
  return widest;
}

template <typename T>
nlohmann::json JsonOf(const std::optional<T>& value) {
  return value.has_value() ? nlohmann::json(*value) : nlohmann::json();
}

}  // namespace

std::vector<std::string> UsageTable(const std::vector<UsageRow>& rows, size_t columns, UsageShape* shape) {
  UsageShape once;
  if (shape == nullptr) shape = &once;
  if (shape->columns != columns) *shape = {.columns = columns};
  for (const UsageRow& row : rows) {
    shape->with_progress = shape->with_progress || row.progress != TaskProgress();
    shape->with_gpus = shape->with_gpus || (row.usage.has_value() && row.usage->gpus > 0);
  }
  UsageColumns shown;
  if (!shape->with_progress) shown.Drop({kStepsColumn, kLossColumn, kStalenessColumn});
  const std::function<void()> ways[] = {
      [&] {
        if (!shape->with_gpus) shown.Drop({kGpuColumn, kGpuMemoryShareColumn, kGpuMemoryColumn});
      },
      [&] { shown.Drop({kProjectColumn}); },
      [&] { shown.short_headings = true; },
      [&] {
        shown.Drop({kMemoryShareColumn, kGpuMemoryShareColumn});
      },
      [&] { shown.Drop({kStalenessColumn}); },
      [&] { shown.Drop({kStateColumn}); },
  };
  for (size_t way = 0; way < shape->narrowed; ++way) ways[way]();
  std::vector<std::string> lines = UsageLines(rows, shown);
  while (WidestOf(lines) > columns && shape->narrowed < std::size(ways)) {
    ways[shape->narrowed++]();
    lines = UsageLines(rows, shown);
  }
  return lines;
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
