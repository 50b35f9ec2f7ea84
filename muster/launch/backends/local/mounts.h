// Shows a task folders of the machine at other paths, or read-only: bind mounts in a mount namespace of its own, made
// between fork and exec, which ends with its last process. Needs the right to make one (root, mostly). Thread-safe.
//
// MountsFor decides in the launcher what to mount. EnterMounts mounts it in the child, with system calls only
// (signal-safety(7)).
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/launch/backends/backend.h"

namespace muster {

// Tries in a child whether this process may make mount namespaces and read-only binds; the error says why not. Forks:
// the process must have no other threads.
[[nodiscard]] absl::Status TryMounts();

// Returns what must be mounted so that a task sees `wanted`: nothing for what is at its path anyway and writable. If
// `permitted` is an error, what is at its path anyway stays as it is, writable, and `note` gets a line that says so;
// PermissionDenied, saying what to do, if something is wanted at another path. NotFound: a host path, or a path to
// mount it at, doesn't exist.
absl::StatusOr<std::vector<ProcessMount>> MountsFor(const std::vector<ProcessMount>& wanted,
                                                    const absl::Status& permitted, std::string* note);

// Makes a namespace and in it the mounts; for the child. Returns 0 or errno; `failed` is then the index of the mount
// that failed, -1 for the namespace.
int EnterMounts(const std::vector<ProcessMount>& mounts, int* failed);

}  // namespace muster
