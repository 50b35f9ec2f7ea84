// Where a task's status page is to be had. Plain values.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

struct StatusAddress {
  std::string host = "127.0.0.1";  // which other hosts can't reach
  int port = 0;                    // 0: any free one

  bool operator==(const StatusAddress&) const = default;
};

// "9100", "0", "0.0.0.0:9100". InvalidArgument names what is accepted.
absl::StatusOr<StatusAddress> ParseStatusAddress(absl::string_view text);

}  // namespace muster
