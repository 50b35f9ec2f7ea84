#include "muster/launch/engines/kubernetes/quota.h"

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/spec/yaml_tree.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr double kRounding = 1e-9;  // of an amount

struct Amount {
  double number = 0;  // of units
  double unit = 1;
  std::string unit_text = "";  // "Mi"

  double value() const { return number * unit; }
};

// "500m", "2Gi", "1e3"; 0 for what isn't an amount.
Amount AmountOf(const std::string& text) {
  static const std::map<std::string_view, double> kUnits = {
      {"n", 1e-9},    {"u", 1e-6},    {"m", 1e-3},    {"", 1},       {"k", 1e3},     {"M", 1e6},
      {"G", 1e9},     {"T", 1e12},    {"P", 1e15},    {"E", 1e18},   {"Ki", 0x1p10}, {"Mi", 0x1p20},
      {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}, {"Ei", 0x1p60}};
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const auto unit = kUnits.find(end);
  if (end == text.c_str() || unit == kUnits.end()) return {};
  return {.number = number, .unit = unit->second, .unit_text = end};
}

// Written in the unit of another amount, to be compared with it.
std::string TextLike(const Amount& other, double value) {
  return absl::StrFormat("%.15g%s", value / other.unit, other.unit_text);
}

using Amounts = std::map<std::string, double>;  // by the quotas' names

std::string TextAt(const YamlNode& map, std::string_view key) {
  const YamlNode* const value = map.Find(key);
  return value == nullptr ? "" : value->text;
}

// What the containers don't request but are limited in is requested, too.
void AddContainer(const YamlNode& container, Amounts& asked) {
  const YamlNode* const resources = container.Find("resources");
  if (resources == nullptr) return;
  const YamlNode* const requests = resources->Find("requests");
  const YamlNode* const limits = resources->Find("limits");
  const auto request = [&asked](const std::string& name, double amount) {
    asked[absl::StrCat("requests.", name)] += amount;
    asked[name] += amount;
  };
  if (requests != nullptr)
    for (size_t i = 0; i < requests->keys.size(); ++i)
      request(requests->keys[i], AmountOf(requests->items[i].text).value());
  if (limits == nullptr) return;
  for (size_t i = 0; i < limits->keys.size(); ++i) {
    const double amount = AmountOf(limits->items[i].text).value();
    asked[absl::StrCat("limits.", limits->keys[i])] += amount;
    if (requests == nullptr || requests->Find(limits->keys[i]) == nullptr) request(limits->keys[i], amount);
  }
}

absl::StatusOr<Amounts> AskedBy(const std::string& manifest) {
  Amounts asked;
  for (const absl::string_view text : absl::StrSplit(manifest, "\n---\n")) {
    ASSIGN_OR_RETURN(const YamlNode document, ParseYaml(std::string(text), "manifest"));
    // "Pod" is "pods" and "count/pods".
    const std::string objects = absl::StrCat(absl::AsciiStrToLower(TextAt(document, "kind")), "s");
    ++asked[objects];
    ++asked[absl::StrCat("count/", objects)];
    const YamlNode* const spec = document.Find("spec");
    const YamlNode* const containers = spec == nullptr ? nullptr : spec->Find("containers");
    if (containers == nullptr) continue;
    for (const YamlNode& container : containers->items) AddContainer(container, asked);
  }
  return asked;
}

bool HasScope(const Json& spec) {
  for (const char* key : {"scopes", "scopeSelector"})
    if (spec.contains(key) && !spec[key].empty()) return true;
  return false;
}

// "quota few: asked pods=3, hard pods=2"
std::vector<std::string> TooSmall(const Json& quotas, const Amounts& asked) {
  std::vector<std::string> said;
  for (const Json& quota : quotas.at("items")) {
    if (HasScope(quota.at("spec"))) continue;
    const Json all_hard = quota.at("spec").value("hard", Json::object());
    for (const auto& [name, hard] : all_hard.items()) {
      const auto amount = asked.find(name);
      const Amount most = AmountOf(hard.get<std::string>());
      if (amount == asked.end() || amount->second <= most.value() * (1 + kRounding)) continue;
      said.push_back(
          OneLine(absl::StrCat("quota ", quota.at("metadata").at("name").get<std::string>(), ": asked ", name, "=",
                               TextLike(most, amount->second), ", hard ", name, "=", hard.get<std::string>())));
    }
  }
  return said;
}

}  // namespace

absl::Status IfItEverFits(const Kubectl& kubectl, const std::string& manifest, const absl::Status& refusal) {
  const auto asked = AskedBy(manifest);
  const auto list = kubectl.Run({"get", "resourcequotas", "--output=json"});
  if (!asked.ok() || !list.ok()) return refusal;
  try {
    const std::vector<std::string> said = TooSmall(Json::parse(*list), *asked);
    if (said.empty()) return refusal;
    return absl::InvalidArgumentError(absl::StrCat(
        "the namespace's quota can never hold this job, whose pods together ask for more than there may be: ",
        absl::StrJoin(said, "; "), "; ask for less, or have the quota raised"));
  } catch (const Json::exception&) {
    return refusal;
  }
}

}  // namespace muster
