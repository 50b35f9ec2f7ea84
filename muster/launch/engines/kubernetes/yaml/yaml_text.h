// Writes a tree of plain values as YAML that people read: manifests of Kubernetes. Pure, thread-safe.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace muster {

// Maps keep their order.
using OrderedJson = nlohmann::ordered_json;

// Returns one document that ends with a newline, without "---": maps and lists in block style, two spaces a level, keys
// in their order. Every parser of YAML 1.1 or 1.2 reads the same values: a text that one might take for something else
// is in quotes; one of several lines is a literal block. The same tree is always the same text.
std::string YamlText(const OrderedJson& tree);

}  // namespace muster
