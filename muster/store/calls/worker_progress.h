// How a worker gets on in synchronous training, for its heartbeats: how many of its pushes were answered, how long its
// steps usually take, and what it does instead of training. Written by the thread that trains, read by the one that
// heartbeats, which must not wait for the first: if that hangs, in whatever lock, its heartbeats have to say so.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

#include "absl/time/time.h"

namespace muster {

class WorkerProgress {
 public:
  WorkerProgress() = default;
  WorkerProgress(const WorkerProgress&) = delete;
  WorkerProgress& operator=(const WorkerProgress&) = delete;

  // The training thread: a push to a round is sent, and was answered.
  void OnPush(absl::Time now);
  void OnAnswer(absl::Time now);

  // The training thread: while this lives, the worker does `what` ("evaluating") instead of training, and nobody takes
  // it for one that hangs. Scopes nest; the innermost is shown.
  class Busy {
   public:
    Busy(WorkerProgress& progress, const std::string& what);
    ~Busy();
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

   private:
    WorkerProgress& progress_;
    const std::string* const before_;
  };

  // Any thread.
  uint64_t steps() const { return steps_.load(std::memory_order_acquire); }
  // The median of the last ones, without the first (HeartbeatRequest::kFirstSteps); zero: there was none yet.
  absl::Duration step() const { return absl::Nanoseconds(step_nanos_.load(std::memory_order_relaxed)); }
  // Empty: it trains.
  std::string busy() const;

 private:
  static constexpr size_t kWindow = 32;
  static constexpr size_t kMostNames = 64;

  std::atomic<uint64_t> steps_{0};
  std::atomic<int64_t> step_nanos_{0};
  std::atomic<const std::string*> busy_{nullptr};  // one of names_
  // Only the training thread uses these.
  std::set<std::string> names_;  // none is ever removed: the other thread may be reading it
  absl::Time answered_at_ = absl::InfiniteFuture();
  std::array<int64_t, kWindow> nanos_{};
  size_t measured_ = 0;
};

}  // namespace muster
