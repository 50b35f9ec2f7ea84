// The kind of a task's connection to each ps, as last seen: the training thread writes it, the status page reads it.
// Thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "muster/base/mutex.h"

namespace muster {

class PsLinks {
 public:
  // `link` is Channel::Stats::link.
  void Set(size_t ps, const char* link) {
    const MutexLock lock(mutex_);
    if (ps >= links_.size()) links_.resize(ps + 1, "");
    links_[ps] = link;
  }
  // One for each ps; empty: nothing was recorded yet.
  std::vector<std::string> Get() const {
    const MutexLock lock(mutex_);
    return {links_.begin(), links_.end()};
  }

 private:
  mutable Mutex mutex_;
  std::vector<const char*> links_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster
