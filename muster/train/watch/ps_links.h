// What a task's connection to each ps is, as it was last seen: the training thread writes, the status page reads.
// Thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "muster/base/mutex.h"

namespace muster {

class PsLinks {
 public:
  // `link`: Channel::Stats::link.
  void Set(size_t ps, const char* link) {
    const MutexLock lock(mutex_);
    if (ps >= links_.size()) links_.resize(ps + 1, "");
    links_[ps] = link;
  }
  // One a ps; empty: nobody has looked yet.
  std::vector<std::string> Get() const {
    const MutexLock lock(mutex_);
    return {links_.begin(), links_.end()};
  }

 private:
  mutable Mutex mutex_;
  std::vector<const char*> links_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster
