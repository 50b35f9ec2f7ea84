// A YAML tree as JSON, for what another system reads: fields of Kubernetes. Stateless, thread-safe.
#pragma once

#include <string>

#include "muster/launch/spec/yaml_tree.h"

namespace muster {

// Returns the values as JSON on one line, with keys in their order. Numbers, truths and null are what YAML 1.2 takes
// for them; a text in quotes stays a text.
std::string JsonText(const YamlNode& node);

}  // namespace muster
