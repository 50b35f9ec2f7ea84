// A project's files, copied and stored by content hash: an experiment runs the code as it was at its start, whatever is
// edited later. docs/experiments/code.md. Blocking; stateless but for the folders, and thread-safe: several
// processes may store the same tree at once; one wins, all see it complete.
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
  std::string link_to;        // target of a symbolic link, as it must be made; such a file has no bytes
  bool empty_folder = false;  // has no bytes either; other folders follow from the paths in them
};

struct ProjectFiles {
  std::vector<ProjectFile> files;  // by path
  int64_t bytes = 0;
};

enum class ListedFiles {
  kNotIgnored,  // without what .musterignore names
  kAll,
};

// The names of the files by which a host shows that it sees a folder begin so (NonceFile); they are no part of a
// project.
inline constexpr char kNoncePrefix[] = ".muster-seen-";

// Lists all files below `folder` except .git and what .musterignore (or, without it, .risemlignore) names
// (ignore_patterns.h). `left_out`: folders to skip if they lie in it: MUSTER_HOME. Symbolic links stay links; a
// relative one that leads out of the project becomes absolute, so that it works from elsewhere. Sockets and the like
// are skipped. InvalidArgument, naming it: an unreadable folder or file, or `folder` itself in `left_out`.
absl::StatusOr<ProjectFiles> ListProject(const std::string& folder, const std::vector<std::string>& left_out = {},
                                         ListedFiles which = ListedFiles::kNotIgnored);

// Copies the files to `trees`/HASH, unless it exists, and returns HASH (hexadecimal SHA-256 over paths, modes and
// contents; always of what the copy holds). A reader sees the whole folder or none, and must not write there. The tree
// is safe from `muster gc` for an hour, even if no experiment refers to it. Calls `progress` now and then with the
// bytes done, out of `files.bytes`. Aborted, naming the file: it vanished or was replaced meanwhile; list again.
// ResourceExhausted, naming the folder: the disk is full; nothing is left of the copy.
absl::StatusOr<std::string> StoreTree(const std::string& folder, const ProjectFiles& files, const std::string& trees,
                                      const std::function<void(int64_t bytes)>& progress);

// Makes a tree that is used again safe from `muster gc` for another hour. NotFound: it is gone.
[[nodiscard]] absl::Status KeepTree(const std::string& trees, const std::string& hash);

// Copies a tree, or a build's result, for a run to work in. The files are its own (reflinks if the file system has
// them), with new permissions; programs stay executable. `to` must not exist; its parents are made. NotFound: the tree
// is gone. An error leaves nothing behind.
// Calls `between` after each file: it may take long.
[[nodiscard]] absl::Status CopyTree(const std::string& tree, const std::string& to,
                                    const std::function<void()>& between = nullptr);

// Returns "Syncing project (5.7 MB, 6 files)".
std::string SyncTitle(const ProjectFiles& files);

}  // namespace muster
