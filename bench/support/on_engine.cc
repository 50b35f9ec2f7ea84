#include "bench/support/on_engine.h"

#include <fstream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster::bench {

absl::StatusOr<double> MillisecondsUntilWritten(const std::string& file, absl::Time start) {
  double seconds = 0;
  if (!(std::ifstream(file) >> seconds))
    return absl::InternalError(absl::StrCat("the system's own job has written no ", file));
  return absl::ToDoubleMilliseconds(absl::UnixEpoch() + absl::Seconds(seconds) - start);
}

}  // namespace muster::bench
