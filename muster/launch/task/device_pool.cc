#include "muster/launch/task/device_pool.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "muster/launch/task/task_environment.h"

namespace muster {

absl::StatusOr<std::string> DevicesFromPool(const std::string& wanted, const std::optional<std::string>& pool) {
  if (!pool.has_value() || wanted.empty()) return wanted;
  const std::vector<std::string> devices = absl::StrSplit(*pool, absl::ByAnyChar(", "), absl::SkipEmpty());
  std::vector<std::string> given;
  for (const std::string& word : std::vector<std::string>(absl::StrSplit(wanted, ','))) {
    size_t place = 0;
    if (!absl::SimpleAtoi(word, &place)) return wanted;
    if (place >= devices.size())
      return absl::FailedPreconditionError(absl::StrCat("the task wants a GPU that isn't there: the host's own ",
                                                        kDevicesVariable, " is '", *pool, "', which has ",
                                                        devices.size(), ", and the run counts on ", place + 1,
                                                        " or more; ask for fewer (gpus), or for a larger share"));
    given.push_back(devices[place]);
  }
  return absl::StrJoin(given, ",");
}

}  // namespace muster
