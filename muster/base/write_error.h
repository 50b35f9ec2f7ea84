// The error of a file that can't be written: says what to do where its disk has no room. Thread-safe.
#pragma once

#include <cerrno>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster {

// `error`: that of the system call. `what`: "cannot write PATH".
inline absl::Status WriteError(int error, const std::string& what) {
  const absl::Status status = absl::ErrnoToStatus(error, what);
  if (error != ENOSPC && error != EDQUOT) return status;
  return {status.code(), absl::StrCat(status.message(), "; make room on its disk")};
}

}  // namespace muster
