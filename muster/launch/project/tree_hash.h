// The hash that names a tree (docs/experiments/code.md), from what is in it. Not thread-safe.
#pragma once

#include <string>

#include "muster/launch/project/project_tree.h"
#include "muster/launch/project/sha256.h"

namespace muster {

bool IsRegular(const ProjectFile& file);
// Returns the SHA-256 of what stands for the contents of a link or an empty folder.
std::string DigestBesideFiles(const ProjectFile& file);

class TreeHash {
 public:
  TreeHash();
  // In the order of the paths. `digest`: SHA-256 of the contents, 32 bytes.
  void Add(const ProjectFile& file, const std::string& digest);
  // Returns 64 hexadecimal digits. Must be the last call, made once.
  std::string Finish();

 private:
  Sha256 sha_;
};

}  // namespace muster
