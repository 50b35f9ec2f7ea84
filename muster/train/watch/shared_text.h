// A text that one thread writes and others read, such as the reason of the last failure on a status page. Thread-safe.
#pragma once

#include <string>

#include "muster/base/mutex.h"

namespace muster {

class SharedText {
 public:
  void Set(const std::string& text) {
    const MutexLock lock(mutex_);
    text_ = text;
  }
  std::string Get() const {
    const MutexLock lock(mutex_);
    return text_;
  }

 private:
  mutable Mutex mutex_;
  std::string text_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster
