// Ends the threads of a training process together. A thread that fails, or has nothing left to do, requests a stop; all
// others poll ShouldStop between two pieces of work; Join waits for them and says why they stopped. Keeps the semantics
// of TensorFlow's Coordinator (python/training/coordinator.py). Thread-safe.
#pragma once

#include <cstdint>
#include <exception>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/mutex.h"
#include "muster/base/wait_clock.h"

namespace muster {

struct CoordinatorOptions {
  // Errors with which a thread stops all threads without a failure: its input is used up.
  std::vector<absl::StatusCode> clean_stop = {absl::StatusCode::kOutOfRange};
  const WaitClock* clock = &RealWaitClock();  // outlives the coordinator
};

struct CoordinatorJoinOptions {
  // How long threads may take to end once a stop was requested.
  absl::Duration stop_grace_period = absl::Seconds(120);
  // Name the threads that are alive after that in the log instead of in an error.
  bool ignore_live_threads = false;
};

class Coordinator {
 public:
  // Makes Join wait for a thread, from Register until this is destroyed, which must be the last thing the thread does.
  class Registration {
   public:
    Registration(Registration&& other) noexcept
        : coordinator_(std::exchange(other.coordinator_, nullptr)), id_(other.id_) {}
    Registration& operator=(Registration&&) = delete;
    ~Registration() {
      if (coordinator_ != nullptr) coordinator_->Leave(id_);
    }

   private:
    friend class Coordinator;
    Registration(Coordinator* coordinator, uint64_t id) : coordinator_(coordinator), id_(id) {}
    Coordinator* coordinator_;
    const uint64_t id_;
  };

  explicit Coordinator(CoordinatorOptions options = {}) : options_(std::move(options)) {}
  // Requests a stop and blocks until every thread has ended, even those that Join gave up: they still call this object.
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Join calls the thread `name` if it doesn't end.
  [[nodiscard]] Registration Register(std::string name);

  // Stops all threads without an error.
  void RequestStop();
  // Stops all threads because of `why`, which Join returns. Only the first request counts: later failures are
  // consequences of it and are only logged. A clean_stop error counts as OK. Returns `why` if Join has returned already
  // and nobody would hear of it; OK otherwise.
  [[nodiscard]] absl::Status RequestStop(const absl::Status& why);
  // The same for a caught exception, which ErrorOf turns into a status; requested_exception keeps the exception itself.
  [[nodiscard]] absl::Status RequestStop(const std::exception_ptr& why);

  bool ShouldStop() const;
  // Waits for a stop, for at most `timeout`. Returns true if a stop was requested.
  bool WaitForStop(absl::Duration timeout = absl::InfiniteDuration());

  // Runs `work` and requests a stop if it returns an error or throws (TensorFlow's stop_on_exception); false if it did.
  bool StopOnError(absl::FunctionRef<absl::Status()> work);

  // Waits until all threads have ended or a stop is requested, then for at most the grace period until all have ended.
  // Returns the error of the first request; else FailedPrecondition "Coordinator stopped with threads still running: a
  // b".
  [[nodiscard]] absl::Status Join(const CoordinatorJoinOptions& options = {});
  // True once Join has returned (with the threads' error or the names of those still alive); false again after
  // ClearStop.
  bool joined() const;

  // The error of the first request, OK if there is none (TensorFlow's raise_requested_exception), and the exception
  // that it was made from, null if there was none.
  absl::Status requested_error() const;
  std::exception_ptr requested_exception() const;

  // Resets everything, so that threads can be registered and started again. Call it after Join. FailedPrecondition:
  // threads that Join gave up are still alive; they would not hear of the stop any more.
  [[nodiscard]] absl::Status ClearStop();

 private:
  [[nodiscard]] absl::Status Stop(const absl::Status& why, const std::exception_ptr& exception);
  void Leave(uint64_t id);
  void AwaitThreads(absl::Duration grace_period) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const CoordinatorOptions options_;

  mutable Mutex mutex_;
  CondVar changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool joined_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
  std::exception_ptr exception_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 0;
  // Alive threads by id, in the order of registration. Join removes the stragglers from it, but not from `alive_`.
  std::map<uint64_t, std::string> threads_ ABSL_GUARDED_BY(mutex_);
  size_t alive_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster
