#include "muster/train/hook_api/session_place.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/cluster/placement/device_filters.h"

namespace muster {
namespace {

struct Row {
  std::string name;
  TaskId task;
  ComputeDevice device;
  int64_t bytes = 0;
};

TaskId HolderOf(const PlacedSlice& slice, const SessionPlace& place) {
  return place.ps.empty() ? place.task : place.ps[slice.ps];
}

std::vector<Row> VariableRows(const ModelBinding& binding, const SessionPlace& place) {
  std::vector<Row> rows;
  for (const PlacedSlice& slice : binding.placement.slices) {
    std::string name = binding.variables[slice.variable].name;
    if (slice.num_shards > 1) absl::StrAppend(&name, " [", slice.shard, "/", slice.num_shards, "]");
    rows.push_back({std::move(name), HolderOf(slice, place), {}, slice.bytes});
  }
  return rows;
}

// Modules in the order of their first variables. Tables of rows have no copy on the device that computes.
std::vector<Row> ModuleRows(const ModelBinding& binding, const SessionPlace& place) {
  std::vector<Row> rows;
  std::map<std::string, size_t> known;
  for (const VariableSpec& variable : binding.variables) {
    const size_t dot = variable.name.rfind('.');
    const std::string module = dot == std::string::npos ? "(the model)" : variable.name.substr(0, dot);
    const auto [found, added] = known.emplace(module, rows.size());
    if (added) rows.push_back({module, place.task, place.device, 0});
    if (variable.kind != VariableKind::kRows) rows[found->second].bytes += variable.bytes();
  }
  return rows;
}

void Append(std::string& table, const std::string& what, const std::vector<Row>& rows) {
  std::vector<std::array<std::string, 4>> cells = {{what, "task", "device", "bytes"}};
  for (const Row& row : rows)
    cells.push_back({row.name, row.task.ToString(), TaskDevice(row.task, row.device), absl::StrCat(row.bytes)});
  std::array<size_t, 4> widths = {};
  for (const auto& line : cells)
    for (size_t column = 0; column < line.size(); ++column)
      widths[column] = std::max(widths[column], line[column].size());
  for (const auto& line : cells)
    absl::StrAppendFormat(&table, "%-*s  %-*s  %-*s  %*s\n", static_cast<int>(widths[0]), line[0],
                          static_cast<int>(widths[1]), line[1], static_cast<int>(widths[2]), line[2],
                          static_cast<int>(widths[3]), line[3]);
}

absl::Status LeftOut(const DeviceFilters& filters, const TaskId& task, const std::string& why) {
  return WrongConfigurationError(absl::StrCat("device_filters ", filters.ToString(), " leave out ", task.ToString(),
                                              ", ", why, "; accepted: filters that let it through, such as ",
                                              task.ToDevice(), " or /job:", task.job));
}

// Returns why a session needs ps number `ps` of the placement; empty: it doesn't.
std::string NeedOf(int ps, const ModelBinding& binding) {
  std::string first;
  int others = 0;
  for (const PlacedSlice& slice : binding.placement.slices) {
    if (slice.ps != ps) continue;
    if (first.empty())
      first = binding.variables[slice.variable].name;
    else
      ++others;
  }
  if (!first.empty()) {
    const std::string more = others == 0 ? "" : absl::StrCat(" and ", others, " more");
    return absl::StrCat("which holds variable '", first, "'", more);
  }
  return ps == 0 ? "which counts the global step" : "";
}

}  // namespace

std::string TaskDevice(const TaskId& task, const ComputeDevice& device) {
  return absl::StrCat("/job:", task.job, "/replica:0/task:", task.index, device.ToDevice());
}

std::string DevicePlacementTable(const ModelBinding& binding, const SessionPlace& place) {
  std::string table;
  Append(table, "variable", VariableRows(binding, place));
  Append(table, "module", ModuleRows(binding, place));
  return table;
}

void LogDevicePlacement(const ModelBinding& binding, const SessionPlace& place) {
  LogInfo("device placement of ", place.task.ToString(), ":");
  for (const absl::string_view line : absl::StrSplit(DevicePlacementTable(binding, place), '\n', absl::SkipEmpty()))
    LogInfo(line);
}

absl::Status CheckDeviceFilters(const std::vector<std::string>& filters, const ModelBinding& binding,
                                const SessionPlace& place) {
  ASSIGN_OR_RETURN(const DeviceFilters parsed, DeviceFilters::Parse(filters));
  for (size_t i = 0; i < place.ps.size(); ++i) {
    ASSIGN_OR_RETURN(const DeviceSpec ps, DeviceSpec::Parse(TaskDevice(place.ps[i], {})));
    const std::string need = NeedOf(static_cast<int>(i), binding);
    if (!need.empty() && !parsed.Allow(ps)) return LeftOut(parsed, place.ps[i], need);
  }
  for (const TaskId& peer : place.peers) {
    ASSIGN_OR_RETURN(const DeviceSpec task, DeviceSpec::Parse(peer.ToDevice()));
    if (!(peer == place.task) && !parsed.Allow(task))
      return LeftOut(parsed, peer, "with which this task combines its updates, as there is no ps");
  }
  return absl::OkStatus();
}

void WarnOfWrongChief(const std::optional<bool>& is_chief, bool cluster_says, const TaskId& task) {
  if (is_chief.value_or(cluster_says) == cluster_says) return;
  LogWarning("the program says is_chief = ", *is_chief ? "true" : "false", ", but by the cluster ", task.ToString(),
             cluster_says ? " is the chief" : " is not the chief",
             ": there must be exactly one chief; leave is_chief unset, and the cluster decides");
}

}  // namespace muster
