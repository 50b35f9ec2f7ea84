#include "muster/launch/engines/driver/driver_variables.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/text/environment_list.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/hosts/host_list.h"

namespace muster {

absl::StatusOr<DriverVariables> ReadDriverVariables(const std::vector<std::string>& environment) {
  DriverVariables driver{.job = VariableIn(environment, "MUSTER_DRIVER_JOB"),
                         .at = VariableIn(environment, "MUSTER_DRIVER_AT"),
                         .socket = VariableIn(environment, "MUSTER_DRIVER_SOCKET"),
                         .hosts = {},
                         .says = OneLine(VariableIn(environment, "MUSTER_DRIVER_SAYS"))};
  if (driver.job.empty())
    return absl::NotFoundError("this isn't a process of a job that muster train has submitted: it has no driver");
  for (const absl::string_view one :
       absl::StrSplit(VariableIn(environment, "MUSTER_DRIVER_HOSTS"), ',', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> host = absl::StrSplit(one, absl::MaxSplits('=', 1));
    if (const absl::Status valid = ValidateHostName(host.first); !valid.ok() || host.second.empty())
      return absl::InvalidArgumentError(
          absl::StrCat("MUSTER_DRIVER_HOSTS: '", OneLine(std::string(one)), "' isn't NAME=ADDRESS"));
    driver.hosts.push_back(host);
  }
  return driver;
}

}  // namespace muster
