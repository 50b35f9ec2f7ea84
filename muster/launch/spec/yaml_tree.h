// A YAML text as a tree of plain values that know their lines, and keep what a checker must see: which scalars were
// quoted, numbers as they were written, keys that are there twice. Stateless, thread-safe.
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
  int line = 1;                   // from 1: of its key, or of itself in a list
  std::string text;               // of a scalar, as written: "0.10" stays "0.10"
  bool quoted = false;            // so, or as a block (|, >): text, whatever it looks like
  std::vector<std::string> keys;  // of a map, one for each of `items`, in order
  std::vector<YamlNode> items;    // of a list or map

  // Of a map: the first with that key; null if there is none, or this is no map.
  const YamlNode* Find(std::string_view key) const;
};

// One document; an empty text is an empty node. InvalidArgument, "NAME:LINE: …": what is no YAML, several documents, a
// key that is no scalar, what is nested deeper than 64 or is larger than 100,000 values once its aliases are written
// out.
absl::StatusOr<YamlNode> ParseYaml(std::string_view text, const std::string& name);

}  // namespace muster
