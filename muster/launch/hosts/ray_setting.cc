#include "muster/launch/hosts/ray_setting.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/base/absl_view.h"
#include "muster/base/text/nearest_name.h"
#include "muster/base/text/one_line.h"

namespace muster {
namespace {

constexpr int kMostRayNodes = 100000;
constexpr char kResourceBeginning[] = "resources.";

bool IsPlainWord(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c)) && c != '"' && c != '\'' && c != '\\';
  });
}

absl::Status NotAccepted(const std::string& name, const std::string& value, std::string_view accepted) {
  return absl::InvalidArgumentError(absl::StrCat(name, " is '", OneLine(value), "'; accepted: ", AbslView(accepted)));
}

absl::Status TakeResource(RaySetting& ray, const std::string& name, const std::optional<std::string>& value) {
  const std::string resource = name.substr(sizeof kResourceBeginning - 1);
  if (!IsPlainWord(resource)) return NotAccepted("the name of a resource", resource, "one of Ray's, as CPU or TPU");
  double amount = 0;
  if (!value.has_value()) {
    ray.resources.erase(resource);
  } else if (absl::SimpleAtod(*value, &amount) && std::isfinite(amount) && amount >= 0) {
    ray.resources[resource] = amount;
  } else {
    return NotAccepted(name, *value, "a number from 0, as Ray counts this resource (memory: in bytes)");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status TakeRaySetting(RaySetting& ray, const std::string& name, const std::optional<std::string>& value) {
  if (absl::StartsWith(name, kResourceBeginning)) return TakeResource(ray, name, value);
  if (name == "nodes") {
    const std::string number = value.value_or("1");
    if (absl::SimpleAtoi(number, &ray.nodes) && ray.nodes >= 1 && ray.nodes <= kMostRayNodes) return absl::OkStatus();
    return NotAccepted(name, number, "a whole number from 1");
  }
  if (name == "address" || name == "python") {
    if (value.has_value() && !IsPlainWord(*value))
      return NotAccepted(name, *value,
                         name == "python" ? "a program, as /opt/ray/bin/python3"
                                          : "where Ray's dashboard answers, as http://HEAD:8265");
    (name == "address" ? ray.address : ray.python) = value.value_or("");
    return absl::OkStatus();
  }
  if (name == "autoscaler") {
    const std::string truth = value.value_or("false");
    if (truth != "true" && truth != "false" && !truth.empty()) return NotAccepted(name, truth, "true or false");
    ray.autoscaler = truth != "false";
    return absl::OkStatus();
  }
  if (name == "resources") {
    if (value.has_value())
      return NotAccepted(name, *value, "a map from resources to numbers, or resources.NAME=NUMBER");
    ray.resources.clear();
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", OneLine(name), "' is unknown", NearestHint(name, {"nodes", "address", "python", "autoscaler", "resources"}),
      "; accepted: nodes, address, python, autoscaler and resources.NAME"));
}

}  // namespace muster
