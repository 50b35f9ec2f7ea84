// From the parameters of a file and of the command line to the runs of an experiment: which values each has, and the
// commands with the values in them. Stateless, thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/launch/spec/experiment_file.h"

namespace muster {

using ParameterValues = std::map<std::string, std::string>;

// What a parameter may be called (ECMAScript), for the JSON schema; ValidateParameterName says the same and more.
inline constexpr char kParameterNamePattern[] = "^[A-Za-z][A-Za-z0-9_-]{0,99}$";
// InvalidArgument naming the name and what is accepted; also a name whose environment variable means something already
// (PATH, OUTPUT_DIR, …).
[[nodiscard]] absl::Status ValidateParameterName(std::string_view name);
// Whether `muster train` sets this environment variable itself, so that nobody else may: OUTPUT_DIR, …; with torchrun
// also RANK, ….
bool IsExperimentVariable(std::string_view variable, bool torchrun);

// "name=value" each (`muster train --param`): replaces the file's values by one, or by several if `value` is "a,b,c" in
// brackets: "[a,b,c]". New names are taken too. InvalidArgument naming what is accepted.
absl::StatusOr<std::vector<ParameterSpec>> WithOverrides(std::vector<ParameterSpec> parameters,
                                                         const std::vector<std::string>& overrides);

// min, min + step, … up to max, which is among them if it falls on the step; logarithmic: each is step times the one
// before. Whole numbers stay whole, others are as short as they can be. InvalidArgument: a step of 0 or less (1 or less
// if logarithmic), max below min, a logarithmic range from 0 or less, more than 10,000 values.
absl::StatusOr<std::vector<std::string>> ValuesOfRange(const ParameterSpec::Range& range);

// Every combination, the last parameter varying fastest; one empty run without parameters. InvalidArgument above
// 10,000.
absl::StatusOr<std::vector<ParameterValues>> AllCombinations(const std::vector<ParameterSpec>& parameters);

// `count` runs with each value drawn evenly (from a range: between its bounds, with 6 digits; on its step if it has
// whole numbers), the same for the same seed on every machine; no combination twice, so that they are fewer than
// `count` where there aren't so many. InvalidArgument: `count` isn't 1 to 10,000.
absl::StatusOr<std::vector<ParameterValues>> RandomCombinations(const std::vector<ParameterSpec>& parameters, int count,
                                                                uint64_t seed);

// The names in `{{ name }}`, in order. InvalidArgument: "{{" without "}}", or without a name between them.
absl::StatusOr<std::vector<std::string>> TemplateNames(std::string_view text);

// `{{ name }}` replaced by its value, which is text for a shell wherever it stands (ShellText). InvalidArgument: names
// that aren't there, a line each, with the nearest that is; what TemplateNames refuses.
absl::StatusOr<std::string> FillTemplate(std::string_view text, const ParameterValues& values);

// NUM_LAYERS for num-layers.
std::string EnvironmentNameOf(std::string_view parameter);

}  // namespace muster
