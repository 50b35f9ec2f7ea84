// What a save's trouble with its files is called on the way from the writer to the training that goes on: a system's
// own codes would be taken for something else there (a stale NFS handle is Aborted, which means that a ps has lost the
// model). Pure; thread-safe.
#pragma once

#include "absl/status/status.h"

namespace muster {

// Returns the error of a file operation with one of two codes. PermissionDenied: it never works as things are (no
// permission, a read-only file system, a file where a directory should be). ResourceExhausted: anything else; it may
// pass (no space, no descriptors, a folder that was removed, a network file system that doesn't answer).
inline absl::Status AsSaveTrouble(const absl::Status& status) {
  if (status.ok()) return status;
  const bool never = absl::IsPermissionDenied(status) || absl::IsFailedPrecondition(status);
  return absl::Status(never ? absl::StatusCode::kPermissionDenied : absl::StatusCode::kResourceExhausted,
                      status.message());
}

inline bool IsSaveTrouble(const absl::Status& status) {
  return absl::IsPermissionDenied(status) || absl::IsResourceExhausted(status);
}

}  // namespace muster
