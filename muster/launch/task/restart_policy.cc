#include "muster/launch/task/restart_policy.h"

#include <signal.h>

#include <algorithm>
#include <iterator>

namespace muster {
namespace {

// Signals that a program causes by its own mistake, which it would repeat.
constexpr int kOwnMistakes[] = {SIGSEGV, SIGABRT, SIGILL, SIGFPE, SIGBUS};

// 137 and 143 are SIGKILL and SIGTERM as a shell reports them of its child; for 138 see docs/architecture.md.
bool SaysTryAgain(int code) { return code == 137 || code == 138 || code == 143; }

}  // namespace

bool IsRetryable(const ExitStatus& status) {
  if (status.at_signal) return true;
  if (status.over_memory != 0) return false;
  if (status.signal == 0) return status.code == 130 || SaysTryAgain(status.code);
  return std::find(std::begin(kOwnMistakes), std::end(kOwnMistakes), status.signal) == std::end(kOwnMistakes);
}

bool IsRetryableInForeground(const ExitStatus& status) {
  return status.at_signal || status.signal != 0 || SaysTryAgain(status.code);
}

}  // namespace muster
