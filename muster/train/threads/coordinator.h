// Ends the threads of a training process together: whoever fails, or has nothing left to do, asks for the stop; all
// the others ask ShouldStop between two pieces of work; Join waits for them and says why they stopped. The semantics
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
  // Errors with which a thread stops everybody and nobody fails: its input is used up.
  std::vector<absl::StatusCode> clean_stop = {absl::StatusCode::kOutOfRange};
  const WaitClock* clock = &RealWaitClock();  // outlives the coordinator
};

struct CoordinatorJoinOptions {
  // How long, once a stop was asked for, threads may take to end.
  absl::Duration stop_grace_period = absl::Seconds(120);
  // Threads that are alive after that are named in the log instead of in an error.
  bool ignore_live_threads = false;
};

class Coordinator {
 public:
  // A thread that Join waits for, from Register until this is destroyed: the last thing that the thread does.
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
  // Asks for a stop and blocks until every thread has ended, Join's stragglers too: they would ask what is gone.
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // `name` is what Join calls the thread if it doesn't end.
  [[nodiscard]] Registration Register(std::string name);

  // Everybody stops, and nothing has failed.
  void RequestStop();
  // Everybody stops because of `why`, which Join returns. Only the first request counts: what fails after it, fails
  // because of it, and is but logged. A clean_stop error is as OK. Returns `why` if Join has returned already, as
  // nobody would hear of it; OK otherwise.
  [[nodiscard]] absl::Status RequestStop(const absl::Status& why);
  // The same for a caught exception, which ErrorOf turns into a status; requested_exception keeps it as it is.
  [[nodiscard]] absl::Status RequestStop(const std::exception_ptr& why);

  bool ShouldStop() const;
  // Waits for a stop, for at most `timeout`; true: there is one.
  bool WaitForStop(absl::Duration timeout = absl::InfiniteDuration());

  // Runs `work` and asks for a stop if it gives back an error or throws (TensorFlow's stop_on_exception). False: it
  // did.
  bool StopOnError(absl::FunctionRef<absl::Status()> work);

  // Waits until all threads have ended or a stop is asked for, then for the grace period until all have ended. Returns
  // the error of the first request; else FailedPrecondition, "Coordinator stopped with threads still running: a b".
  [[nodiscard]] absl::Status Join(const CoordinatorJoinOptions& options = {});
  // Join has waited for the threads, and returned their error or named who is still there; not since ClearStop.
  bool joined() const;

  // The error of the first request, OK if there is none (TensorFlow's raise_requested_exception); the exception that it
  // was made of, null if it was none.
  absl::Status requested_error() const;
  std::exception_ptr requested_exception() const;

  // As new: threads can be registered and started again. Call it after Join. FailedPrecondition: threads that Join has
  // left are still there; they would not hear of the stop any more.
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
  // Alive, by id: in the order of registration. Join forgets its stragglers, `alive_` does not.
  std::map<uint64_t, std::string> threads_ ABSL_GUARDED_BY(mutex_);
  size_t alive_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster
