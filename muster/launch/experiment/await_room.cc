#include "muster/launch/experiment/await_room.h"

#include <signal.h>

#include <cstdio>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "muster/base/clock.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

bool IsAskedToEnd() {
  sigset_t waiting;
  sigpending(&waiting);
  return sigismember(&waiting, SIGTERM) == 1 || sigismember(&waiting, SIGINT) == 1;
}

}  // namespace

absl::Status AwaitRoom(absl::FunctionRef<absl::Status()> work, const std::function<void(absl::Duration)>& pause,
                       const std::function<bool()>& gives_up) {
  for (bool said = false;; pause(kRoomPause)) {
    absl::Status done = work();
    if (!absl::IsResourceExhausted(done) || gives_up()) return done;
    if (!std::exchange(said, true))
      std::fprintf(stderr, "muster: %s: the experiment waits until there is some\n",
                   std::string(done.message()).c_str());
  }
}

absl::Status AwaitRoom(absl::FunctionRef<absl::Status()> work, absl::Time until) {
  return AwaitRoom(work, absl::SleepFor, [until] { return RealClock().Now() >= until || IsAskedToEnd(); });
}

absl::StatusOr<std::unique_ptr<Registry>> OpenOnceThereIsRoom(const Home& home) {
  std::unique_ptr<Registry> registry;
  RETURN_IF_ERROR(AwaitRoom([&]() -> absl::Status {
    ASSIGN_OR_RETURN(registry, Registry::Open(home, RealClock(), ToRead::kOpen));
    return absl::OkStatus();
  }));
  return registry;
}

}  // namespace muster
