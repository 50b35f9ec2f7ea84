// A YAML text as a tree of plain values that know their lines. Keeps what a checker needs: which scalars were quoted,
// numbers as written, duplicate keys. Stateless, thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

enum class YamlKind {
  kEmpty,  // null, ~, or nothing behind the colon
  kScalar,
  kList,
  kMap,
};

struct YamlNode {
  YamlKind kind = YamlKind::kEmpty;
  int line = 1;                   // from 1: the line of its key, or its own in a list
  std::string text;               // of a scalar, as written: "0.10" stays "0.10"
  bool quoted = false;            // quoted or a block (|, >): always text
  char block = 0;                 // '|' or '>' of a text that is a block
  int block_line = 0;             // the line with that character; the text begins in the next
  std::vector<std::string> keys;  // of a map, one for each of `items`, in order
  std::vector<YamlNode> items;    // of a list or map

  // Returns the first item of a map with that key; null if there is none or this isn't a map.
  const YamlNode* Find(std::string_view key) const;
};

// Parses one document; an empty text is an empty node. InvalidArgument, "NAME:LINE: …": not YAML, several documents, a
// key that isn't a scalar, nesting deeper than 64, or more than 100,000 values with aliases expanded.
absl::StatusOr<YamlNode> ParseYaml(std::string_view text, const std::string& name);

}  // namespace muster
