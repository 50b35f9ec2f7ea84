// Writes plain values as YAML that people read: manifests of Kubernetes. Pure, thread-safe.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace muster {

// Maps keep their order.
using OrderedJson = nlohmann::ordered_json;

// Returns a document of block style, without "---"; short maps of plain values stand in braces on one line. Every
// parser of YAML 1.1 or 1.2 reads the same values: what could be taken for something else than a text is quoted.
std::string CompactYaml(const OrderedJson& value);

}  // namespace muster
