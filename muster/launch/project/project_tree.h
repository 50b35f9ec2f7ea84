// A project's files, copied by content hash: what an experiment runs is what was there when it was started, whatever is
// edited later. docs/experiments.md, "The code". Blocking; not thread-safe on one `trees` folder entry (several
// processes may store the same tree at once: one wins, all see the whole).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

struct ProjectFile {
  std::string path;  // below the project's folder, "data/train.csv"
  int64_t bytes = 0;
  bool executable = false;
  std::string link_to;  // of a symbolic link, as it is; then there are no bytes
};

struct ProjectFiles {
  std::vector<ProjectFile> files;  // by path
  int64_t bytes = 0;
};

// All files below `folder` but .git, and what .musterignore (or .risemlignore) names: one pattern a line, as .gitignore
// has them ('*', '?', '**', a '/' at the beginning or end, '!'; '#' comments). InvalidArgument: a folder that can't be
// read, a file that can't (named). Sockets and the like are left out.
absl::StatusOr<ProjectFiles> ListProject(const std::string& folder);

// Copies them to `trees`/HASH, unless it is there, and returns HASH (hexadecimal SHA-256 over paths, modes and
// contents). A reader sees the whole folder or none. `progress` is told the bytes done now and then.
absl::StatusOr<std::string> StoreTree(const std::string& folder, const ProjectFiles& files, const std::string& trees,
                                      const std::function<void(int64_t bytes)>& progress);

// A tree's copy for a run to work in; the files are its own. `to` must not exist. (Reflinks where the file system has
// them.)
[[nodiscard]] absl::Status CopyTree(const std::string& tree, const std::string& to);

// "Syncing project (5.7 MB, 6 files)".
std::string SyncTitle(const ProjectFiles& files);

}  // namespace muster
