// For tests of a process that has as many descriptors as it may: while this object lives, the process can't open
// another. It affects the whole process, so only one thread may use it at a time.
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
