// The mark of an error that says: this cluster and these options don't fit each other, and never will. The process ends
// with exit code 2 then, not 1: nothing was trained, and starting it again as it is helps nobody.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"

namespace muster {

inline constexpr char kWrongConfiguration[] = "muster/wrong_configuration";

// `error` with that mark.
inline absl::Status AsWrongConfiguration(absl::Status error) {
  error.SetPayload(kWrongConfiguration, absl::Cord());
  return error;
}

// A FailedPrecondition.
inline absl::Status WrongConfigurationError(absl::string_view message) {
  return AsWrongConfiguration(absl::FailedPreconditionError(message));
}

// An InvalidArgument: options that contradict each other, or a value that none accepts.
inline absl::Status WrongOptionError(absl::string_view message) {
  return AsWrongConfiguration(absl::InvalidArgumentError(message));
}

inline bool IsWrongConfiguration(const absl::Status& status) {
  return status.GetPayload(kWrongConfiguration).has_value();
}

}  // namespace muster
