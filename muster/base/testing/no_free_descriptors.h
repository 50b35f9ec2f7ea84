// For tests of what happens when a process has as many descriptors as it may: while this lives, it can't have another.
// Of the whole process, so for one thread at a time.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include "muster/base/check.h"

namespace muster {

class NoFreeDescriptors {
 public:
  NoFreeDescriptors() {
    MUSTER_CHECK(getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const int lowest_free = dup(STDERR_FILENO);
    MUSTER_CHECK(lowest_free >= 0 && close(lowest_free) == 0);
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(lowest_free);
    MUSTER_CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
  }
  ~NoFreeDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoFreeDescriptors(const NoFreeDescriptors&) = delete;
  NoFreeDescriptors& operator=(const NoFreeDescriptors&) = delete;

 private:
  rlimit before_{};
};

}  // namespace muster
