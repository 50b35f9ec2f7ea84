// What the training API throws, at its outermost layer only: an absl::Status with the exit code for the process. An
// uncaught Error is printed as one line, "digits: ...", and the process exits with that code.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

// The exit codes of a process (docs/architecture.md). Kubernetes' TFJob reads 2 as permanent and 138 as worth retrying.
enum class ExitCode : int { kDone = 0, kFailed = 1, kUsage = 2, kInterrupted = 130, kRetry = 138 };

// kUsage: IsWrongConfiguration. kInterrupted: a stop was requested while a ps was gone (IsInterrupted). kRetry: a ps
// was lost beyond the deadline (Unavailable) or restarted without the model (Aborted), or the chief didn't come in time
// (DeadlineExceeded).
ExitCode ExitCodeOf(const absl::Status& status);

class Error : public std::runtime_error {
 public:
  explicit Error(absl::Status status) : std::runtime_error(std::string(status.message())), status_(std::move(status)) {}
  const absl::Status& status() const { return status_; }
  ExitCode exit_code() const { return ExitCodeOf(status_); }

 private:
  absl::Status status_;
};

// Throws Error unless `status` is OK.
void ThrowIfError(const absl::Status& status);
// Returns the value, or throws Error.
template <typename T>
T ValueOrThrow(absl::StatusOr<T> value) {
  ThrowIfError(value.status());
  return *std::move(value);
}

// Returns the status of a caught exception: an Error's own status, Internal with its text for any other exception.
absl::Status ErrorOf(const std::exception_ptr& exception);

// From now on an uncaught Error ends the process as described above. Other uncaught exceptions end it as before.
void HandleUncaughtErrors();

}  // namespace muster
