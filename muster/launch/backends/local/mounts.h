// What a task sees of the machine's folders at other paths, or read-only: bind mounts in a mount namespace of the
// task's own, made between fork and exec, gone with its last process. Needs the right to make one (root, mostly).
// Thread-safe.
//
// MountsFor decides in the launcher what is to be done; EnterMounts does it in the child, with system calls only
// (signal-safety(7)).
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/launch/backends/backend.h"

namespace muster {

// Whether this process may make mount namespaces and read-only binds, as a child that tries finds. The error says why
// not. Forks: the process must have no other threads.
[[nodiscard]] absl::Status TryMounts();

// What has to be mounted so that a task sees `wanted`: nothing for what is at its path anyway and writable. Where
// `permitted` is an error, what is at its path anyway stays as it is, writable, and `note` gets a line that says so;
// PermissionDenied, saying what to do, if something is wanted elsewhere. NotFound: a host path, or a path to mount it
// at, isn't there.
absl::StatusOr<std::vector<ProcessMount>> MountsFor(const std::vector<ProcessMount>& wanted,
                                                    const absl::Status& permitted, std::string* note);

// In the child: makes a namespace, and in it the mounts. 0, or errno; `failed` is then the number of the mount that
// couldn't be made, -1: the namespace.
int EnterMounts(const std::vector<ProcessMount>& mounts, int* failed);

}  // namespace muster
