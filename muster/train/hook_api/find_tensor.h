// A run's value by its name, for the hooks that look at one. Pure; thread-safe.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/train/hook_api/session_hook.h"

namespace muster {

// InvalidArgument, which names the hook and what the step has, if it has no such value.
inline absl::StatusOr<double> FindTensor(const char* hook, const RunValues& values, const std::string& name) {
  double value;
  if (values.Find(name, &value)) return value;
  return absl::InvalidArgumentError(
      absl::StrCat(hook, ": the step has no '", name, "'; it has ", absl::StrJoin(values.Names(), ", "),
                   "; add a scalar in the step with summary::Scalar or the session's AddScalar"));
}

}  // namespace muster
