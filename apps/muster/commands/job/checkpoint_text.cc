#include "apps/muster/commands/job/checkpoint_text.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

// Makes columns as wide as their widest cell, two spaces apart.
std::string Table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string table;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) absl::StrAppendFormat(&line, "%-*s  ", static_cast<int>(widths[i]), row[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&table, line, "\n");
  }
  return table;
}

std::string Dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

// Returns the time in UTC; "" if it is unknown.
std::string TimeOf(const Manifest& manifest) {
  if (manifest.saved_at == 0) return "";
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixMillis(manifest.saved_at), absl::UTCTimeZone());
}

std::string Shape(const std::vector<int64_t>& shape) { return absl::StrCat("[", absl::StrJoin(shape, ","), "]"); }

std::string SlicesText(const std::vector<ManifestSlice>& slices) {
  return absl::StrJoin(slices, " ", [](std::string* out, const ManifestSlice& slice) {
    absl::StrAppend(out, "part ", slice.part, "@", slice.offset, Shape(slice.shape));
    if (slice.row_step != 1) absl::StrAppend(out, " every ", slice.row_step, "th row");
  });
}

Json SlicesJson(const std::vector<ManifestSlice>& slices) {
  Json list = Json::array();
  for (const ManifestSlice& slice : slices) {
    list.push_back({{"part", slice.part}, {"tensor", slice.tensor}, {"offset", slice.offset}, {"shape", slice.shape}});
    if (slice.row_step != 1) list.back()["row_step"] = slice.row_step;
  }
  return list;
}

// Writes infinities as text, because JSON has none.
Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(absl::StrFormat("%g", value)); }

Json RuleJson(const ManifestRule& rule) {
  Json hyperparameters = Json::object();
  for (const auto& [name, value] : rule.hyperparameters) hyperparameters[name] = value;
  return {{"name", rule.name}, {"hyperparameters", hyperparameters}};
}

}  // namespace

std::string ListingTable(const std::vector<ListedCheckpoint>& checkpoints) {
  std::vector<std::vector<std::string>> rows = {{"NAME", "STEP", "TIME", "BYTES", "PARTS", "RULE", "NOTE"}};
  for (const ListedCheckpoint& checkpoint : checkpoints) {
    std::vector<std::string> notes;
    if (checkpoint.newest) notes.emplace_back("newest");
    if (checkpoint.preserved) notes.emplace_back("preserved");
    if (!checkpoint.damage.ok()) notes.push_back(absl::StrCat("DAMAGED: ", checkpoint.damage.message()));
    const bool known = !checkpoint.manifest.save_id.empty();
    rows.push_back({checkpoint.name, absl::StrCat(checkpoint.global_step), TimeOf(checkpoint.manifest),
                    absl::StrCat(checkpoint.bytes), known ? absl::StrCat(checkpoint.manifest.parts.size()) : "",
                    checkpoint.manifest.rule.name, absl::StrJoin(notes, ", ")});
  }
  return Table(rows);
}

std::string ListingJson(const std::vector<ListedCheckpoint>& checkpoints) {
  Json list = Json::array();
  for (const ListedCheckpoint& checkpoint : checkpoints)
    list.push_back({{"name", checkpoint.name},
                    {"global_step", checkpoint.global_step},
                    {"time", TimeOf(checkpoint.manifest)},
                    {"bytes", checkpoint.bytes},
                    {"parts", checkpoint.manifest.parts.size()},
                    {"rule", checkpoint.manifest.rule.name},
                    {"newest", checkpoint.newest},
                    {"preserved", checkpoint.preserved},
                    {"damage", checkpoint.damage.ok() ? Json() : Json(std::string(checkpoint.damage.message()))}});
  return Dump(list);
}

std::string ManifestText(const Manifest& manifest, const std::string& path) {
  std::string text = absl::StrCat(path, "\nglobal step  ", manifest.global_step, "\n");
  if (manifest.saved_at != 0) absl::StrAppend(&text, "saved at     ", TimeOf(manifest), "\n");
  absl::StrAppend(&text, "rule         ", manifest.rule.name.empty() ? "none" : manifest.rule.name);
  for (const auto& [name, value] : manifest.rule.hyperparameters) absl::StrAppendFormat(&text, " %s=%.9g", name, value);
  absl::StrAppend(&text, "\nparts\n");
  for (size_t i = 0; i < manifest.parts.size(); ++i)
    absl::StrAppend(&text, "  ", i, "  ", manifest.parts[i].file, "  ", manifest.parts[i].bytes, " bytes\n");
  absl::StrAppend(&text, "variables\n");
  std::vector<std::vector<std::string>> rows;
  for (const ManifestVariable& variable : manifest.variables) {
    rows.push_back({absl::StrCat("  ", variable.name), DTypeName(variable.dtype), Shape(variable.shape), variable.kind,
                    SlicesText(variable.slices)});
    for (const ManifestSlot& slot : variable.slots)
      rows.push_back({absl::StrCat("    ", variable.name, "/", slot.name), DTypeName(slot.dtype),
                      slot.stride == 1 ? Shape(variable.shape) : absl::StrCat("one per ", slot.stride), "slot",
                      SlicesText(slot.slices)});
  }
  if (!rows.empty()) text += Table(rows);
  if (!manifest.extras.empty()) absl::StrAppend(&text, "extras\n");
  for (const auto& [name, value] : manifest.extras)
    absl::StrAppend(&text, "  ", name, "  ", value.size(), " characters\n");
  return text;
}

std::string ManifestJson(const Manifest& manifest, const std::string& path) {
  Json parts = Json::array();
  for (const ManifestPart& part : manifest.parts) parts.push_back({{"file", part.file}, {"bytes", part.bytes}});
  Json variables = Json::array();
  for (const ManifestVariable& variable : manifest.variables) {
    Json slots = Json::array();
    for (const ManifestSlot& slot : variable.slots)
      slots.push_back({{"name", slot.name},
                       {"dtype", DTypeName(slot.dtype)},
                       {"stride", slot.stride},
                       {"slices", SlicesJson(slot.slices)}});
    variables.push_back({{"name", variable.name},
                         {"dtype", DTypeName(variable.dtype)},
                         {"shape", variable.shape},
                         {"kind", variable.kind},
                         {"slices", SlicesJson(variable.slices)},
                         {"slots", slots}});
  }
  Json extras = Json::object();
  for (const auto& [name, value] : manifest.extras) extras[name] = value.size();
  return Dump({{"path", path},
               {"global_step", manifest.global_step},
               {"time", TimeOf(manifest)},
               {"rule", RuleJson(manifest.rule)},
               {"parts", parts},
               {"variables", variables},
               {"extras", extras}});
}

std::string StatisticsTable(const std::vector<NamedStatistics>& tensors) {
  std::vector<std::vector<std::string>> rows = {{"NAME", "VALUES", "MIN", "MAX", "MEAN", "NORM", "NAN"}};
  const auto number = [](double value) { return absl::StrFormat("%.6g", value); };
  for (const auto& [name, of] : tensors)
    rows.push_back({name, absl::StrCat(of.values), number(of.min), number(of.max), number(of.mean), number(of.norm),
                    absl::StrCat(of.nans)});
  return Table(rows);
}

std::string StatisticsJson(const std::vector<NamedStatistics>& tensors) {
  Json list = Json::array();
  for (const auto& [name, of] : tensors)
    list.push_back({{"name", name},
                    {"values", of.values},
                    {"min", Number(of.min)},
                    {"max", Number(of.max)},
                    {"mean", Number(of.mean)},
                    {"norm", Number(of.norm)},
                    {"nans", of.nans}});
  return Dump(list);
}

}  // namespace muster
