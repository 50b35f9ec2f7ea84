// Writes a tree of plain values as YAML. Pure, thread-safe.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace muster {

// Returns one document that ends with a newline: maps and lists in block style, two spaces a level, keys in their
// order. A text that YAML might take for something else is in quotes; one of several lines is a literal block. The same
// tree is always the same text.
std::string YamlText(const nlohmann::ordered_json& tree);

}  // namespace muster
