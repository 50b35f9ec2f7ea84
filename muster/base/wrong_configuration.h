// Marks an error that means: this cluster and these options don't fit each other, and never will. The process then
// exits with code 2, not 1: nothing was trained, and restarting it unchanged doesn't help.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"

namespace muster {

inline constexpr char kWrongConfiguration[] = "muster/wrong_configuration";

// Returns `error` with that mark.
inline absl::Status AsWrongConfiguration(absl::Status error) {
  error.SetPayload(kWrongConfiguration, absl::Cord());
  return error;
}

// Returns a FailedPrecondition with that mark.
inline absl::Status WrongConfigurationError(absl::string_view message) {
  return AsWrongConfiguration(absl::FailedPreconditionError(message));
}

// Returns an InvalidArgument with that mark: options that contradict each other, or a value that no option accepts.
inline absl::Status WrongOptionError(absl::string_view message) {
  return AsWrongConfiguration(absl::InvalidArgumentError(message));
}

inline bool IsWrongConfiguration(const absl::Status& status) {
  return status.GetPayload(kWrongConfiguration).has_value();
}

}  // namespace muster
