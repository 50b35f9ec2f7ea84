// The number that tells one life of a task from the next.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"

namespace muster {

// Random, never 0 (which means "never joined").
inline uint64_t NewIncarnation() {
  std::random_device device;
  return (uint64_t{device()} << 32 | device()) | 1;
}

// "host, pid 12", for messages that name a process.
inline std::string ThisProcess() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return absl::StrCat(host, ", pid ", getpid());
}

}  // namespace muster
