// One thread that runs the given tasks in order, for work that takes long and must not hold up an event loop (writing a
// file). Thread-safe.
#pragma once

#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "muster/base/mutex.h"

namespace muster {

class BackgroundThread {
 public:
  BackgroundThread() : thread_([this] { Work(); }) {}
  // Blocks until all given tasks have run.
  ~BackgroundThread() {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      changed_.NotifyAll();
    }
    thread_.join();
  }
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;

  void Run(absl::AnyInvocable<void()> task) {
    MutexLock lock(mutex_);
    tasks_.push_back(std::move(task));
    changed_.NotifyAll();
  }

 private:
  void Work() {
    std::vector<absl::AnyInvocable<void()>> batch;  // swaps with tasks_, so that neither allocates
    for (;;) {
      {
        MutexLock lock(mutex_);
        while (tasks_.empty() && !stopping_) changed_.Wait(mutex_);
        if (tasks_.empty()) return;
        tasks_.swap(batch);
      }
      for (absl::AnyInvocable<void()>& task : batch) {
        task();
        task = nullptr;
      }
      batch.clear();
    }
  }

  Mutex mutex_;
  CondVar changed_;
  std::vector<absl::AnyInvocable<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: starts when all other members exist
};

}  // namespace muster
