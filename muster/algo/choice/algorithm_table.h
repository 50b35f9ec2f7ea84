// Every way to combine the workers' updates, by the name that `--algorithm` and `muster algorithms` know it by: what it
// does, what can be set, where it comes from, when to take it. Constant data; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {

// What a parameter's text has to be.
enum class ParameterKind : uint8_t {
  kWhole,   // a whole number
  kNumber,  // a finite number
  kRule,    // an update rule: "adam", "sgd:learning_rate=0.1" (optim/rule_text.h)
  kRates,   // numbers separated by commas, one a worker
};

struct ParameterInfo {
  absl::string_view name;  // "window": the flag is --window
  ParameterKind kind = ParameterKind::kNumber;
  absl::string_view standard;  // the default, as it would be written; or in words, in brackets: "(as many as workers)"
  absl::string_view meaning;   // one line
};

struct AlgorithmInfo {
  absl::string_view name;
  std::vector<absl::string_view> aliases;
  absl::string_view summary;  // one line
  absl::string_view formula;  // lines; θ̃ the global values, θ a worker's, g a gradient, λ the window, τ the staleness
  absl::string_view reference;  // paper, equation
  absl::string_view advice;     // when to take it
  std::vector<ParameterInfo> parameters;
  bool needs_ps = true;
};

// In the order of the documentation.
std::span<const AlgorithmInfo> AlgorithmTable();

// By name or alias; '-' and '_' are the same, capitals too. Null: there is none.
const AlgorithmInfo* FindAlgorithm(absl::string_view name);

// The name nearest to what was asked for; empty: none is near.
std::string NearestAlgorithm(absl::string_view name);

// InvalidArgument that says so of a name that FindAlgorithm doesn't know, with the nearest one and all that there are.
absl::Status UnknownAlgorithm(absl::string_view name);

}  // namespace muster
