// Turns the parameters of a file and of the command line into the runs of an experiment: the values of each, and the
// commands filled with them. Stateless, thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/launch/spec/experiment_file.h"

namespace muster {

using ParameterValues = std::map<std::string, std::string>;

// Pattern of a parameter's name (ECMAScript), for the JSON schema; ValidateParameterName checks this and more.
inline constexpr char kParameterNamePattern[] = "^[A-Za-z][A-Za-z0-9_-]{0,99}$";
// Returns InvalidArgument naming the name and what is accepted, also if its environment variable has a meaning already
// (PATH, OUTPUT_DIR, …).
[[nodiscard]] absl::Status ValidateParameterName(std::string_view name);
// Returns whether `muster train` sets this environment variable itself, so that users may not: OUTPUT_DIR, …; with
// torchrun also RANK, ….
bool IsExperimentVariable(std::string_view variable, bool torchrun);

// Applies "name=value" each (`muster train --param`): replaces the file's values by one, or by several if `value` is
// "[a,b,c]". Also accepts new names, but not one that differs from the file's only by '-', '_' and capitals.
// InvalidArgument naming what is accepted.
absl::StatusOr<std::vector<ParameterSpec>> WithOverrides(std::vector<ParameterSpec> parameters,
                                                         const std::vector<std::string>& overrides);

// Returns min, min + step, … up to max, which is included if it falls on the step; if logarithmic, each is step times
// the previous one. Whole numbers stay whole, others are as short as possible. InvalidArgument: a step of 0 or less (1
// or less if logarithmic), max below min, a logarithmic range from 0 or less, more than 10,000 values.
absl::StatusOr<std::vector<std::string>> ValuesOfRange(const ParameterSpec::Range& range);

// Returns every combination, the last parameter varying fastest; one empty run without parameters. InvalidArgument
// above 10,000.
absl::StatusOr<std::vector<ParameterValues>> AllCombinations(const std::vector<ParameterSpec>& parameters);

// Returns `count` runs with each value drawn evenly (from a range: between its bounds, with 6 digits; on its step if it
// has whole numbers). The same seed gives the same runs on every machine. No combination comes twice, so there may be
// fewer than `count`. InvalidArgument: `count` isn't 1 to 10,000.
absl::StatusOr<std::vector<ParameterValues>> RandomCombinations(const std::vector<ParameterSpec>& parameters, int count,
                                                                uint64_t seed);

// Returns the names in `{{ name }}`, in order. InvalidArgument: "{{" without "}}", or without a name between them.
absl::StatusOr<std::vector<std::string>> TemplateNames(std::string_view text);

// Replaces `{{ name }}` by its value, or by a reference to the variable ValueVariableOf(name), so that it is plain text
// for a shell (ShellText). InvalidArgument, a line each: unknown names, with the nearest known one; places where the
// value wouldn't arrive as it is; what TemplateNames refuses.
absl::StatusOr<std::string> FillTemplate(std::string_view text, const ParameterValues& values);

// Returns NUM_LAYERS for num-layers.
std::string EnvironmentNameOf(std::string_view parameter);
// Returns MUSTER_VALUE_NUM_LAYERS: the environment variable with the value for filled-in commands. Unlike NUM_LAYERS it
// can't be set by `env`.
std::string ValueVariableOf(std::string_view parameter);

}  // namespace muster
