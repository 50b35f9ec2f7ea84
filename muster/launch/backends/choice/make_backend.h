// Which Backend a name means: the table of launch engines, one line each in make_backend.cc. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/launch/backends/backend.h"
#include "muster/launch/system/fd_loop.h"

namespace muster {

// All engines there are.
std::vector<std::string> BackendNames();

// Borrows `loop` and `events`, which must outlive it. InvalidArgument names an engine that there isn't, the nearest and
// all that there are.
absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(absl::string_view name, const BackendOptions& options,
                                                     FdLoop& loop, BackendEvents& events);

}  // namespace muster
