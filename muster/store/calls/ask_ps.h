// Sends one request from outside the job's tasks to a parameter server: the command line's questions and commands.
// Blocks.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/store/messages/messages.h"
#include "muster/transport/transport.h"

namespace muster {

// Returns the control part of the answer of the ps at `address`. Unavailable: it can't be reached, or doesn't answer
// within `patience`; PermissionDenied: it serves another job; otherwise its own error.
absl::StatusOr<std::string> AskPs(const std::string& address, const JobToken& token, StoreMethod method,
                                  std::string control, absl::Duration patience);

}  // namespace muster
