#include "muster/train/threads/error.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "muster/base/log.h"
#include "muster/base/text/program_name.h"
#include "muster/base/wrong_configuration.h"
#include "muster/store/calls/shutdown_wait.h"

namespace muster {

ExitCode ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return ExitCode::kDone;
  if (IsInterrupted(status)) return ExitCode::kInterrupted;
  if (IsWrongConfiguration(status)) return ExitCode::kUsage;
  const bool of_the_cluster =
      absl::IsUnavailable(status) || absl::IsAborted(status) || absl::IsDeadlineExceeded(status);
  return of_the_cluster ? ExitCode::kRetry : ExitCode::kFailed;
}

void ThrowIfError(const absl::Status& status) {
  if (!status.ok()) throw Error(status);
}

absl::Status ErrorOf(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    return error.status();
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  } catch (...) {
    return absl::InternalError("an exception of an unknown type");
  }
}

void HandleUncaughtErrors() {
  std::set_terminate([] {
    if (const std::exception_ptr current = std::current_exception()) {
      try {
        std::rethrow_exception(current);
      } catch (const Error& error) {
        std::fprintf(stderr, "%s: %s\n", ProgramName().c_str(), error.what());
        std::fflush(nullptr);
        _exit(static_cast<int>(error.exit_code()));
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: uncaught exception: %s\n", ProgramName().c_str(), error.what());
      } catch (...) {
        std::fprintf(stderr, "%s: uncaught exception of an unknown type\n", ProgramName().c_str());
      }
    }
    std::abort();
  });
}

}  // namespace muster
