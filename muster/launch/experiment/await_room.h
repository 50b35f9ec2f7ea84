// Lets a supervisor that can't begin because the disk of MUSTER_HOME is full wait for room, as a run that goes on does:
// it could write neither an end nor the reason. Blocks. Not thread-safe.
#pragma once

#include <functional>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/launch/registry/registry.h"

namespace muster {

// Between two tries.
inline constexpr absl::Duration kRoomPause = absl::Seconds(1);

// Does `work` until it returns something other than ResourceExhausted, and returns that, or the last one once
// `gives_up`. Waits by `pause`. The first time it says on stderr what there is no room for.
[[nodiscard]] absl::Status AwaitRoom(absl::FunctionRef<absl::Status()> work,
                                     const std::function<void(absl::Duration)>& pause,
                                     const std::function<bool()>& gives_up);
// The same, by real time, for a supervisor that has SIGINT and SIGTERM blocked: gives up once one of them waits, or at
// `until`.
[[nodiscard]] absl::Status AwaitRoom(absl::FunctionRef<absl::Status()> work, absl::Time until = absl::InfiniteFuture());
// Opens the registry so, as Registry::Open with ToRead::kOpen.
absl::StatusOr<std::unique_ptr<Registry>> OpenOnceThereIsRoom(const Home& home);

}  // namespace muster
