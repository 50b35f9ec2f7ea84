#include "muster/launch/project/project_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/launch/project/file_copy.h"
#include "muster/launch/project/folder_lock.h"
#include "muster/launch/project/remove_folder.h"
#include "muster/launch/project/temporary_folder.h"
#include "muster/launch/project/tree_hash.h"

namespace muster {
namespace {

// What a tree contains or will contain.
struct TreeContents {
  std::string hash;            // hexadecimal
  std::vector<int64_t> bytes;  // of each ProjectFile
};

class ContentsOfTree {
 public:
  void Add(const ProjectFile& file, const FileContents& contents) {
    hash_.Add(file, contents.digest);
    contents_.bytes.push_back(contents.bytes);
  }
  TreeContents Finish() {
    contents_.hash = hash_.Finish();
    return std::move(contents_);
  }

 private:
  TreeHash hash_;
  TreeContents contents_;
};

// Returns the contents of what isn't a file: a link's target, or nothing.
FileContents ContentsBesideFiles(const ProjectFile& file) { return {.bytes = 0, .digest = DigestBesideFiles(file)}; }

// Every file is read once to hash it, and again if it must be copied: each is half of the progress.
class SyncProgress {
 public:
  SyncProgress(int64_t total, const std::function<void(int64_t bytes)>& tell)
      : step_(std::max<int64_t>(total / 100, 1 << 20)), total_(total), tell_(tell) {}

  void Add(int64_t bytes) {
    twice_ += bytes;
    const int64_t done = std::min(twice_ / 2, total_);
    if (done - told_ >= step_) Tell(done);
  }
  void Finish() { Tell(total_); }

 private:
  void Tell(int64_t done) {
    told_ = done;
    if (tell_) tell_(done);
  }

  const int64_t step_;
  const int64_t total_;
  const std::function<void(int64_t bytes)>& tell_;
  int64_t twice_ = 0;
  int64_t told_ = 0;
};

absl::StatusOr<TreeContents> HashProject(const std::string& folder, const ProjectFiles& files, SyncProgress& progress) {
  ContentsOfTree hasher;
  for (const ProjectFile& file : files.files) {
    if (!IsRegular(file)) {
      hasher.Add(file, ContentsBesideFiles(file));
      continue;
    }
    ASSIGN_OR_RETURN(const FileContents contents, HashFile(JoinPath(folder, file.path)));
    hasher.Add(file, contents);
    progress.Add(contents.bytes);
  }
  return hasher.Finish();
}

absl::Status CannotMake(const std::string& path, int error) {
  const bool full = error == ENOSPC || error == EDQUOT;
  return absl::ErrnoToStatus(
      error, absl::StrCat("cannot make ", path,
                          full ? "; make room there (`muster gc`), or name another folder by MUSTER_HOME" : ""));
}

absl::Status MakeTreeFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  return error ? CannotMake(path, error.value()) : absl::OkStatus();
}

absl::Status MakeTreeLink(const std::string& path, const std::string& link_to) {
  return symlink(link_to.c_str(), path.c_str()) == 0 ? absl::OkStatus() : CannotMake(path, errno);
}

absl::StatusOr<TreeContents> CopyProject(const std::string& folder, const ProjectFiles& files, const std::string& tree,
                                         SyncProgress& progress) {
  ContentsOfTree hasher;
  RETURN_IF_ERROR(MakeTreeFolder(tree));
  std::set<std::string> made;
  for (const ProjectFile& file : files.files) {
    const std::string target = JoinPath(tree, file.path);
    const std::string above = file.empty_folder ? target : std::string(std::filesystem::path(target).parent_path());
    if (made.insert(above).second) RETURN_IF_ERROR(MakeTreeFolder(above));
    if (!IsRegular(file)) {
      if (!file.link_to.empty()) RETURN_IF_ERROR(MakeTreeLink(target, file.link_to));
      hasher.Add(file, ContentsBesideFiles(file));
      continue;
    }
    ASSIGN_OR_RETURN(const FileContents contents,
                     CopyAndHashFile(JoinPath(folder, file.path), target, file.executable));
    hasher.Add(file, contents);
    progress.Add(contents.bytes);
  }
  return hasher.Finish();
}

// A tree that was stored just before a loss of power may have empty or short files.
bool IsWholeTree(const std::string& tree, const ProjectFiles& files, const TreeContents& contents) {
  struct stat info;
  if (lstat(tree.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return false;
  for (size_t i = 0; i < files.files.size(); ++i) {
    const ProjectFile& file = files.files[i];
    if (lstat(JoinPath(tree, file.path).c_str(), &info) != 0) return false;
    const bool executable = (info.st_mode & S_IXUSR) != 0;
    const bool whole = file.empty_folder       ? S_ISDIR(info.st_mode)
                       : !file.link_to.empty() ? S_ISLNK(info.st_mode)
                                               : S_ISREG(info.st_mode) && info.st_size == contents.bytes[i] &&
                                                     executable == file.executable;
    if (!whole) return false;
  }
  return true;
}

// `muster gc` looks at this time.
absl::Status TouchTree(const std::string& tree) {
  if (utimensat(AT_FDCWD, tree.c_str(), nullptr, 0) == 0) return absl::OkStatus();
  if (errno == ENOENT)
    return absl::NotFoundError(absl::StrCat("the code of the experiment is gone: there is no ", tree));
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot set the time of ", tree));
}

// Returns whether the tree exists and is complete.
absl::StatusOr<bool> UseStoredTree(const std::string& trees, const ProjectFiles& files, const TreeContents& contents) {
  ASSIGN_OR_RETURN(const FolderLock instant, FolderLock::Take(trees, kInstantLockWait));
  const std::string tree = JoinPath(trees, contents.hash);
  if (!IsWholeTree(tree, files, contents)) return false;
  RETURN_IF_ERROR(TouchTree(tree));
  return true;
}

// Moves `made` from `temporary` to its place, unless another process was first.
absl::Status PublishTree(const std::string& made, const TemporaryFolder& temporary, const std::string& trees,
                         const ProjectFiles& files, const TreeContents& contents) {
  ASSIGN_OR_RETURN(const FolderLock instant, FolderLock::Take(trees, kInstantLockWait));
  const std::string tree = JoinPath(trees, contents.hash);
  if (IsWholeTree(tree, files, contents)) return TouchTree(tree);
  const std::string damaged = JoinPath(temporary.path(), "damaged");
  if (rename(tree.c_str(), damaged.c_str()) != 0 && errno != ENOENT) return CannotMake(tree, errno);
  RETURN_IF_ERROR(TouchTree(made));
  return rename(made.c_str(), tree.c_str()) == 0 ? absl::OkStatus() : CannotMake(tree, errno);
}

absl::Status CopyTreeEntry(const std::filesystem::directory_entry& entry, const std::string& to,
                           std::vector<std::pair<std::string, std::string>>& folders) {
  const std::string from = entry.path();
  const std::string target = JoinPath(to, entry.path().filename());
  std::error_code error;
  const std::filesystem::file_status status = entry.symlink_status(error);
  if (status.type() == std::filesystem::file_type::directory) {
    folders.emplace_back(from, target);
  } else if (status.type() == std::filesystem::file_type::symlink) {
    const std::string link_to = std::filesystem::read_symlink(from, error);
    if (!error) return MakeTreeLink(target, link_to);
  } else if (status.type() == std::filesystem::file_type::regular) {
    const bool executable = (status.permissions() & std::filesystem::perms::owner_exec) != std::filesystem::perms::none;
    return CopyFileOnce(from, target, executable);
  }
  return error ? absl::ErrnoToStatus(error.value(), absl::StrCat("cannot read ", from)) : absl::OkStatus();
}

absl::Status CopyTreeContents(const std::string& tree, const std::string& to, const std::function<void()>& between) {
  std::vector<std::pair<std::string, std::string>> folders = {{tree, to}};
  while (!folders.empty()) {
    const auto [from, target] = std::move(folders.back());
    folders.pop_back();
    if (mkdir(target.c_str(), 0777) != 0) return CannotMake(target, errno);
    std::error_code error;
    for (std::filesystem::directory_iterator entry(from, error), end; !error && entry != end; entry.increment(error)) {
      RETURN_IF_ERROR(CopyTreeEntry(*entry, target, folders));
      if (between) between();
    }
    if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot read ", from));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> StoreTree(const std::string& folder, const ProjectFiles& files, const std::string& trees,
                                      const std::function<void(int64_t bytes)>& progress) {
  SyncProgress told(files.bytes, progress);
  // Usually nothing was edited, and then hashing is all that has to be done.
  ASSIGN_OR_RETURN(TreeContents contents, HashProject(folder, files, told));
  ASSIGN_OR_RETURN(const bool there, UseStoredTree(trees, files, contents));
  if (!there) {
    ASSIGN_OR_RETURN(TemporaryFolder temporary, TemporaryFolder::Make(trees));
    const std::string made = JoinPath(temporary.path(), "tree");
    // The project may have been edited since; what was copied is what counts.
    ASSIGN_OR_RETURN(contents, CopyProject(folder, files, made, told));
    RETURN_IF_ERROR(PublishTree(made, temporary, trees, files, contents));
  }
  told.Finish();
  return contents.hash;
}

absl::Status KeepTree(const std::string& trees, const std::string& hash) {
  ASSIGN_OR_RETURN(const FolderLock instant, FolderLock::Take(trees, kInstantLockWait));
  return TouchTree(JoinPath(trees, hash));
}

absl::Status CopyTree(const std::string& tree, const std::string& to, const std::function<void()>& between) {
  struct stat info;
  if (stat(tree.c_str(), &info) != 0 && errno == ENOENT)
    return absl::NotFoundError(absl::StrCat("the code of the experiment is gone: there is no ", tree));
  // Not made by this copy, so it stays.
  if (lstat(to.c_str(), &info) == 0) return absl::AlreadyExistsError(absl::StrCat(to, " is there already"));
  RETURN_IF_ERROR(MakeTreeFolder(std::filesystem::path(to).parent_path()));
  absl::Status copied = CopyTreeContents(tree, to, between);
  if (!copied.ok()) RemoveFolder(to).IgnoreError();
  return copied;
}

}  // namespace muster
