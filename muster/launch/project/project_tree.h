// A project's files, copied by content hash: what an experiment runs is what was there when it was started, whatever is
// edited later. docs/experiments/code.md. Blocking; stateless but for the folders, and thread-safe: several
// processes may store the same tree at once, one wins, all see the whole.
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
  std::string link_to;        // of a symbolic link, as it is to be made; then there are no bytes
  bool empty_folder = false;  // likewise; other folders are there by what is in them
};

struct ProjectFiles {
  std::vector<ProjectFile> files;  // by path
  int64_t bytes = 0;
};

// All below `folder` but .git and what .musterignore (or else .risemlignore) names (ignore_patterns.h). `left_out`:
// folders that are no part of it either, if they lie in it: MUSTER_HOME. Symbolic links stay links; a relative one that
// leads out of the project becomes absolute, so that it leads to the same from elsewhere. Sockets and the like are left
// out. InvalidArgument, naming it: a folder or a file that can't be read, the folder itself in `left_out`.
absl::StatusOr<ProjectFiles> ListProject(const std::string& folder, const std::vector<std::string>& left_out = {});

// Copies them to `trees`/HASH, unless it is there, and returns HASH (hexadecimal SHA-256 over paths, modes and
// contents; always of what the copy holds). A reader sees the whole folder or none; it must not write there. Until an
// hour later the tree is safe from `muster gc`, whoever refers to it. `progress` is told the bytes done now and then,
// of `files.bytes`. Aborted, naming the file: it vanished or was replaced meanwhile; list again. ResourceExhausted,
// naming the folder: the disk is full; nothing is left of the copy.
absl::StatusOr<std::string> StoreTree(const std::string& folder, const ProjectFiles& files, const std::string& trees,
                                      const std::function<void(int64_t bytes)>& progress);

// For a tree that is used again: makes it safe from `muster gc` for another hour. NotFound: it is gone.
[[nodiscard]] absl::Status KeepTree(const std::string& trees, const std::string& hash);

// A copy of a tree, or of what a build made of it, for a run to work in; the files are its own (reflinks where the file
// system has them), as new, programs stay programs. `to` must not exist; the folders above it are made. NotFound: the
// tree is gone. After an error there is nothing of it.
[[nodiscard]] absl::Status CopyTree(const std::string& tree, const std::string& to);

// "Syncing project (5.7 MB, 6 files)".
std::string SyncTitle(const ProjectFiles& files);

}  // namespace muster
