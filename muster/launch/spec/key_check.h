// Checks a file against the table of keys (key_table.h), and parses single values. Stateless, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "muster/base/file_mistakes.h"
#include "muster/launch/spec/key_table.h"
#include "muster/launch/spec/yaml_tree.h"

namespace muster {

// Adds to `mistakes` what is wrong with `node` as that section at `path` ("train.tensorflow"; empty: the file itself),
// and with everything below it: unknown keys, with the nearest known one; duplicate and missing keys; values that match
// none of their forms.
void CheckKeys(const YamlNode& node, const KeySection& section, const std::string& path, FileMistakes& mistakes);

// Parse scalars by YAML 1.2's rules with 1.1's yes, no, on and off; nullopt if it isn't one or is quoted.
std::optional<int64_t> WholeOf(const YamlNode& node);
std::optional<double> NumberOf(const YamlNode& node);  // finite
std::optional<bool> TruthOf(const YamlNode& node);
// Also accepts quoted values: "250ms". A bare number is seconds; from 0 to a day.
std::optional<absl::Duration> DurationOf(const YamlNode& node);

}  // namespace muster
