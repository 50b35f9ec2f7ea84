#include "muster/cluster/placement/placement_text.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/json_text.h"
#include "muster/cluster/quoted.h"

namespace muster {
namespace {

// One "key:number" of a partitioning.
struct Setting {
  std::string key;
  int64_t value = 0;
};

absl::Status BadPartitioning(std::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat("partitioning ", Quoted(text),
                                                 "; accepted: none, fixed:N, max_bytes:B, max_bytes:B,max_shards:K, "
                                                 "min_slice:BYTES,max_partitions:K with whole numbers from 1"));
}

absl::StatusOr<std::vector<Setting>> ParseSettings(std::string_view text) {
  std::vector<Setting> settings;
  for (absl::string_view part : absl::StrSplit(absl::string_view(text.data(), text.size()), ',')) {
    std::pair<absl::string_view, absl::string_view> fields = absl::StrSplit(part, absl::MaxSplits(':', 1));
    Setting setting{std::string(fields.first)};
    bool digits = !fields.second.empty();
    for (char c : fields.second) digits = digits && absl::ascii_isdigit(static_cast<unsigned char>(c));
    if (!digits || !absl::SimpleAtoi(fields.second, &setting.value) || setting.value < 1) return BadPartitioning(text);
    settings.push_back(std::move(setting));
  }
  return settings;
}

absl::Status WrongSpec(const std::string& where, const std::string& what, const std::string& accepted) {
  return absl::InvalidArgumentError(absl::StrCat(where, ": ", what, "; accepted: ", accepted));
}

absl::Status ReadShape(const nlohmann::json& shape, const std::string& where, VariableSpec& variable) {
  constexpr char kAccepted[] = "a list of whole numbers from 0, [] for a scalar";
  if (!shape.is_array()) return WrongSpec(where, DescribeJson(shape) + " is not a shape", kAccepted);
  for (const nlohmann::json& extent : shape) {
    bool fits = extent.is_number_integer() &&
                (!extent.is_number_unsigned() || extent.get<uint64_t>() <= std::numeric_limits<int64_t>::max());
    if (!fits || extent.get<int64_t>() < 0) return WrongSpec(where, DescribeJson(extent) + " in the shape", kAccepted);
    variable.shape.push_back(extent.get<int64_t>());
  }
  return absl::OkStatus();
}

absl::StatusOr<VariableSpec> ReadVariable(const nlohmann::json& json, const std::string& where) {
  constexpr char kAccepted[] = "{\"name\": \"w\", \"shape\": [784, 100], \"dtype\": \"float32\"}";
  if (!json.is_object()) return WrongSpec(where, DescribeJson(json) + " is not a variable", kAccepted);
  for (const char* key : {"name", "shape", "dtype"}) {
    if (!json.contains(key)) return WrongSpec(where, absl::StrCat("no \"", key, "\""), kAccepted);
  }
  for (const auto& [key, value] : json.items()) {
    if (key != "name" && key != "shape" && key != "dtype")
      return WrongSpec(where, "unknown key " + Quoted(key), kAccepted);
  }
  VariableSpec variable;
  const nlohmann::json& name = json.at("name");
  if (!name.is_string() || name.get_ref<const std::string&>().empty()) {
    return WrongSpec(where + ".name", DescribeJson(name) + " is not a name", "a string that isn't empty");
  }
  variable.name = name.get<std::string>();
  RETURN_IF_ERROR(ReadShape(json.at("shape"), where + ".shape", variable));
  const nlohmann::json& dtype = json.at("dtype");
  absl::StatusOr<DType> parsed = ParseDType(dtype.is_string() ? dtype.get<std::string>() : DescribeJson(dtype));
  if (!parsed.ok()) return absl::InvalidArgumentError(absl::StrCat(where, ".dtype: ", parsed.status().message()));
  variable.dtype = *parsed;
  return variable;
}

}  // namespace

absl::StatusOr<Placement> ParsePlacement(std::string_view text) {
  if (text == "round_robin") return Placement::kRoundRobin;
  if (text == "greedy") return Placement::kGreedyBySize;
  if (text == "greedy_sorted") return Placement::kGreedySorted;
  return absl::InvalidArgumentError(
      absl::StrCat("strategy ", Quoted(text), "; accepted: round_robin, greedy, greedy_sorted"));
}

absl::StatusOr<Partitioning> ParsePartitioning(std::string_view text) {
  using Kind = Partitioning::Kind;
  Partitioning result;
  if (text == "none") return result;
  ASSIGN_OR_RETURN(std::vector<Setting> settings, ParseSettings(text));
  const Setting& first = settings[0];
  const Setting* second = settings.size() > 1 ? &settings[1] : nullptr;
  if (settings.size() == 1 && first.key == "fixed") {
    result.kind = Kind::kFixed;
    result.shards = first.value;
  } else if (settings.size() <= 2 && first.key == "max_bytes" && (!second || second->key == "max_shards")) {
    result.kind = Kind::kMaxBytes;
    result.max_shard_bytes = first.value;
    result.max_shards = second ? second->value : 0;
  } else if (settings.size() == 2 && first.key == "min_slice" && second->key == "max_partitions") {
    result.kind = Kind::kMinSlice;
    result.min_slice_bytes = first.value;
    result.max_partitions = second->value;
  } else {
    return BadPartitioning(text);
  }
  return result;
}

absl::StatusOr<std::vector<VariableSpec>> VariablesFromJson(std::string_view text, std::string_view what) {
  std::string where(what);
  ASSIGN_OR_RETURN(nlohmann::json json, ParseJson(text, what));
  if (!json.is_array())
    return WrongSpec(where, DescribeJson(json) + " is not a list of variables", "[{\"name\": …}, …]");
  std::vector<VariableSpec> variables;
  std::set<std::string> names;
  for (size_t i = 0; i < json.size(); ++i) {
    std::string place = absl::StrCat(where, " [", i, "]");
    ASSIGN_OR_RETURN(VariableSpec variable, ReadVariable(json[i], place));
    if (!names.insert(variable.name).second) {
      return WrongSpec(place + ".name", Quoted(variable.name) + " is there twice", "each name once");
    }
    variables.push_back(std::move(variable));
  }
  return variables;
}

std::string PlacementToJson(const std::vector<VariableSpec>& variables, const PlacementResult& placement) {
  nlohmann::ordered_json slices = nlohmann::ordered_json::array();
  for (const PlacedSlice& slice : placement.slices) {
    slices.push_back(
        {{"name", variables[slice.variable].name}, {"shard", slice.shard}, {"ps", slice.ps}, {"bytes", slice.bytes}});
  }
  nlohmann::ordered_json json{{"placement", std::move(slices)}, {"load_bytes", placement.load_bytes}};
  return json.dump();
}

}  // namespace muster
