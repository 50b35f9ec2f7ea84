// MUSTER_CHECK is for our own bugs only, never for what the world can cause (a dead peer, a bad file or a malformed
// frame is an absl::Status). A failed check prints file, line and condition, and aborts. Thread-safe.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace muster {

[[noreturn]] inline void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace muster

#define MUSTER_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::muster::CheckFailed(__FILE__, __LINE__, #condition))
