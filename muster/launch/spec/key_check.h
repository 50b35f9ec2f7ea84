// Whether a file keeps to the table of keys (key_table.h), and what single values mean. Stateless, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "muster/launch/spec/file_mistakes.h"
#include "muster/launch/spec/key_table.h"
#include "muster/launch/spec/yaml_tree.h"

namespace muster {

// Adds to `mistakes` what is wrong with `node` as that section, which stands at `path` ("train.tensorflow", empty: the
// file itself), and everything below: unknown keys, with the nearest that there is, keys twice, missing ones, and
// values that have none of their forms.
void CheckKeys(const YamlNode& node, const KeySection& section, const std::string& path, FileMistakes& mistakes);

// Values of scalars, by YAML 1.2's rules with 1.1's yes, no, on and off; nothing if it isn't one, or is in quotes.
std::optional<int64_t> WholeOf(const YamlNode& node);
std::optional<double> NumberOf(const YamlNode& node);  // finite
std::optional<bool> TruthOf(const YamlNode& node);
// In quotes too: "250ms". A bare number is seconds; not below 0, nor above a day.
std::optional<absl::Duration> DurationOf(const YamlNode& node);

}  // namespace muster
