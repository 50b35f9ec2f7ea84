// The table of all algorithms by the name that `--algorithm` and `muster algorithms` use: what each does, its
// parameters, its source and when to use it. Constant data; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {

// The type that a parameter's text must have.
enum class ParameterKind : uint8_t {
  kWhole,   // a whole number
  kNumber,  // a finite number
  kRule,    // an update rule: "adam", "sgd:learning_rate=0.1" (optim/rule_text.h)
  kRates,   // numbers separated by commas, one per worker
};

struct ParameterInfo {
  absl::string_view name;  // "window": the flag is --window
  ParameterKind kind = ParameterKind::kNumber;
  absl::string_view standard;  // the default, as a user would write it, or words in brackets: "(as many as workers)"
  absl::string_view meaning;   // one line
};

struct AlgorithmInfo {
  absl::string_view name;
  std::vector<absl::string_view> aliases;
  absl::string_view summary;  // one line
  absl::string_view formula;  // lines; θ̃ the global values, θ a worker's, g a gradient, λ the window, τ the staleness
  absl::string_view reference;  // paper, equation
  absl::string_view advice;     // when to use it
  std::vector<ParameterInfo> parameters;
  bool needs_ps = true;
};

// Returns the algorithms in the order of the documentation.
std::span<const AlgorithmInfo> AlgorithmTable();

// Finds by name or alias. '-' equals '_', and capitals don't matter. Returns null for an unknown name.
const AlgorithmInfo* FindAlgorithm(absl::string_view name);

// Returns the name nearest to `name`; empty if none is near.
std::string NearestAlgorithm(absl::string_view name);

// Returns InvalidArgument for a name that FindAlgorithm doesn't know, with the nearest name and all names.
absl::Status UnknownAlgorithm(absl::string_view name);

}  // namespace muster
