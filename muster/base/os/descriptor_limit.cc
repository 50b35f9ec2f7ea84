#include "muster/base/os/descriptor_limit.h"

#include <sys/resource.h>

#include <algorithm>

namespace muster {
namespace {

// Descriptors are numbered by ints. A limit beyond this one is as good as none.
constexpr rlim_t kMost = 1 << 30;

rlimit Limits() {
  rlimit limits = {.rlim_cur = 1024, .rlim_max = 1024};
  getrlimit(RLIMIT_NOFILE, &limits);
  return limits;
}

}  // namespace

size_t RaiseDescriptorLimit() {
  rlimit limits = Limits();
  limits.rlim_cur = limits.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limits);  // if it is refused, the limit stays as it is
  return DescriptorLimit();
}

size_t DescriptorLimit() { return std::min(Limits().rlim_cur, kMost); }

}  // namespace muster
