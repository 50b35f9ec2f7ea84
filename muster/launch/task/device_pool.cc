#include "muster/launch/task/device_pool.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/environment_list.h"
#include "muster/launch/task/task_environment.h"

namespace muster {
namespace {

// HIP takes an empty variable for one that isn't there, but ends the list at a number that no device has.
constexpr char kNoHipDevice[] = "-1";

void AddVariable(const std::string& name, const std::vector<std::string>& environment, NamedValues& values) {
  if (std::optional<std::string> value = FindVariableIn(environment, name); value.has_value())
    values.emplace_back(name, *std::move(value));
}

// Returns the places "0,2" as numbers; nullopt: they are names.
std::optional<std::vector<size_t>> PlacesIn(const std::string& wanted) {
  std::vector<size_t> places;
  for (const absl::string_view word : absl::StrSplit(wanted, ',', absl::SkipEmpty()))
    if (!absl::SimpleAtoi(word, &places.emplace_back())) return std::nullopt;
  return places;
}

absl::StatusOr<std::string> DevicesAt(const std::vector<size_t>& places, const std::string& name,
                                      const std::string& pool) {
  if (places.empty() && name == kHipDevicesVariable) return kNoHipDevice;
  const std::vector<std::string> devices = absl::StrSplit(pool, absl::ByAnyChar(", "), absl::SkipEmpty());
  std::vector<std::string> given;
  for (const size_t place : places) {
    if (place >= devices.size())
      return absl::FailedPreconditionError(absl::StrCat("the task wants a GPU that isn't there: the host's own ", name,
                                                        " is '", pool, "', which has ", devices.size(),
                                                        ", and the run counts on ", place + 1,
                                                        " or more; ask for fewer (gpus), or for a larger share"));
    given.push_back(devices[place]);
  }
  return absl::StrJoin(given, ",");
}

}  // namespace

NamedValues DevicePoolIn(const std::vector<std::string>& environment) {
  NamedValues pool;
  AddVariable(kDevicesVariable, environment, pool);
  AddVariable(kHipDevicesVariable, environment, pool);
  if (pool.empty()) AddVariable(kRocrDevicesVariable, environment, pool);
  return pool;
}

absl::Status GiveDevices(const NamedValues& pool, NamedValues& environment) {
  const auto own = std::find_if(environment.begin(), environment.end(),
                                [](const auto& variable) { return variable.first == kDevicesVariable; });
  if (pool.empty() || own == environment.end()) return absl::OkStatus();
  const std::optional<std::vector<size_t>> places = PlacesIn(own->second);
  if (!places.has_value()) return absl::OkStatus();
  environment.erase(own);
  for (const auto& [name, devices] : pool) {
    ASSIGN_OR_RETURN(std::string given, DevicesAt(*places, name, devices));
    environment.emplace_back(name, std::move(given));
  }
  return absl::OkStatus();
}

}  // namespace muster
