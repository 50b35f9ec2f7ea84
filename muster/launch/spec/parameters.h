// From the parameters of a file and of the command line to the runs of an experiment: which values each has, and the
// commands with the values in them. Stateless, thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/launch/spec/experiment_file.h"

namespace muster {

using ParameterValues = std::map<std::string, std::string>;

// "name=value" each (`muster train --param`): replaces the file's values by one, or by several if `value` is "a,b,c" in
// brackets: "[a,b,c]". New names are taken too. InvalidArgument naming what is accepted.
absl::StatusOr<std::vector<ParameterSpec>> WithOverrides(std::vector<ParameterSpec> parameters,
                                                         const std::vector<std::string>& overrides);

// Every combination, the last parameter varying fastest; one empty run without parameters. InvalidArgument above
// 10,000.
absl::StatusOr<std::vector<ParameterValues>> AllCombinations(const std::vector<ParameterSpec>& parameters);

// `count` runs with each value drawn evenly (from a range: between its bounds, on its step if it has whole numbers),
// the same for the same seed on every machine; no combination of listed values twice.
absl::StatusOr<std::vector<ParameterValues>> RandomCombinations(const std::vector<ParameterSpec>& parameters, int count,
                                                                uint64_t seed);

// `{{ name }}` replaced by its value, quoted for a shell only if it needs that. InvalidArgument: a name that isn't
// there, with the nearest that is; "{{" without "}}".
absl::StatusOr<std::string> FillTemplate(std::string_view text, const ParameterValues& values);

// NUM_LAYERS for num-layers.
std::string EnvironmentNameOf(std::string_view parameter);

}  // namespace muster
