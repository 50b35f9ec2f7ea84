// The address of a task's status page. Plain values.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

struct StatusAddress {
  std::string host = "127.0.0.1";  // not reachable from other hosts
  int port = 0;                    // 0: any free one

  bool operator==(const StatusAddress&) const = default;
};

// Accepts "9100", "0", "0.0.0.0:9100". InvalidArgument names the accepted forms.
absl::StatusOr<StatusAddress> ParseStatusAddress(absl::string_view text);

}  // namespace muster
