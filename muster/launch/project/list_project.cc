#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/launch/project/decimal_size.h"
#include "muster/launch/project/ignore_patterns.h"
#include "muster/launch/project/project_tree.h"

namespace muster {
namespace {

// Identifies a folder by whatever path.
using FolderIdentity = std::pair<dev_t, ino_t>;

std::optional<FolderIdentity> IdentityOfFolder(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  return FolderIdentity(info.st_dev, info.st_ino);
}

// Returns whether a link at `path` leads out of the project's folder.
bool LeadsOut(const std::string& path, const std::string& link_to) {
  int depth = 0;
  const std::string whole = absl::StrCat(path, "/../", link_to);
  for (const absl::string_view part : absl::StrSplit(whole, '/')) {
    if (part.empty() || part == ".") continue;
    depth += part == ".." ? -1 : 1;
    if (depth < 0) return true;
  }
  return false;
}

class ProjectLister {
 public:
  ProjectLister(std::string folder, IgnorePatterns patterns, std::vector<FolderIdentity> left_out)
      : folder_(std::move(folder)), patterns_(std::move(patterns)), left_out_(std::move(left_out)) {}

  absl::StatusOr<ProjectFiles> List() && {
    folders_.emplace_back();
    while (!folders_.empty()) {
      const std::string folder = std::move(folders_.back());
      folders_.pop_back();
      RETURN_IF_ERROR(ListFolder(folder));
    }
    std::sort(found_.files.begin(), found_.files.end(),
              [](const ProjectFile& a, const ProjectFile& b) { return a.path < b.path; });
    return std::move(found_);
  }

 private:
  std::string PathOf(const std::string& below) const {
    return below.empty() ? folder_ : absl::StrCat(folder_, "/", below);
  }

  absl::Status CannotRead(int error, const std::string& below) const {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read ", PathOf(below), ": ", std::generic_category().message(error),
                     "; accepted: a project whose files can be read; .musterignore names what isn't part of it"));
  }

  absl::Status ListFolder(const std::string& below) {
    const std::unique_ptr<DIR, int (*)(DIR*)> opened(opendir(PathOf(below).c_str()), closedir);
    if (opened == nullptr) {
      // A file that vanished meanwhile doesn't belong to the project.
      if (errno == ENOENT && !below.empty()) return absl::OkStatus();
      return CannotRead(errno, below);
    }
    const size_t files_before = found_.files.size();
    const size_t folders_before = folders_.size();
    for (;;) {
      errno = 0;
      const dirent* entry = readdir(opened.get());
      if (entry == nullptr && errno != 0) return CannotRead(errno, below);
      if (entry == nullptr) break;
      const std::string name = entry->d_name;
      if (name == "." || name == ".." || name == ".git" || absl::StartsWith(name, kNoncePrefix)) continue;
      RETURN_IF_ERROR(ListEntry(dirfd(opened.get()), name, below.empty() ? name : absl::StrCat(below, "/", name)));
    }
    if (found_.files.size() == files_before && folders_.size() == folders_before && !below.empty())
      found_.files.push_back({.path = below, .empty_folder = true});
    return absl::OkStatus();
  }

  absl::Status ListEntry(int parent, const std::string& name, const std::string& below) {
    struct stat info;
    if (fstatat(parent, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
      return errno == ENOENT ? absl::OkStatus() : CannotRead(errno, below);
    if (patterns_.Ignores(below, S_ISDIR(info.st_mode))) return absl::OkStatus();
    if (S_ISDIR(info.st_mode)) {
      const FolderIdentity identity(info.st_dev, info.st_ino);
      if (std::find(left_out_.begin(), left_out_.end(), identity) == left_out_.end()) folders_.push_back(below);
    } else if (S_ISLNK(info.st_mode)) {
      return ListLink(below);
    } else if (S_ISREG(info.st_mode)) {
      if (faccessat(parent, name.c_str(), R_OK, AT_EACCESS) != 0 && errno != ENOENT) return CannotRead(errno, below);
      found_.files.push_back({.path = below, .bytes = info.st_size, .executable = (info.st_mode & S_IXUSR) != 0});
      found_.bytes += info.st_size;
    }
    return absl::OkStatus();
  }

  absl::Status ListLink(const std::string& below) {
    std::error_code error;
    std::string link_to = std::filesystem::read_symlink(PathOf(below), error);
    if (error == std::errc::no_such_file_or_directory) return absl::OkStatus();
    if (error) return CannotRead(error.value(), below);
    if (link_to[0] != '/' && LeadsOut(below, link_to)) {
      // No folder between the project's and `below` is a link.
      const std::string above = std::filesystem::path(PathOf(below)).parent_path();
      link_to = absl::StrCat(above, "/", link_to);
    }
    found_.files.push_back({.path = below, .link_to = std::move(link_to)});
    return absl::OkStatus();
  }

  const std::string folder_;  // absolute, without links
  const IgnorePatterns patterns_;
  const std::vector<FolderIdentity> left_out_;
  std::vector<std::string> folders_;  // still to list
  ProjectFiles found_;
};

absl::StatusOr<IgnorePatterns> ReadIgnorePatterns(const std::string& folder) {
  for (const char* name : {".musterignore", ".risemlignore"}) {
    const auto text = PosixFileSystem().ReadFile(JoinPath(folder, name));
    if (text.ok()) return IgnorePatterns(*text);
    if (!absl::IsNotFound(text.status())) return absl::InvalidArgumentError(text.status().message());
  }
  return IgnorePatterns();
}

}  // namespace

absl::StatusOr<ProjectFiles> ListProject(const std::string& folder, const std::vector<std::string>& left_out,
                                         ListedFiles which) {
  std::error_code error;
  const std::string real = std::filesystem::canonical(folder, error);
  const std::optional<FolderIdentity> root = error ? std::nullopt : IdentityOfFolder(real);
  if (!root.has_value())
    return absl::InvalidArgumentError(absl::StrCat("cannot read the project's folder ", folder, ": ",
                                                   error ? error.message() : std::generic_category().message(errno)));
  std::vector<FolderIdentity> identities;
  for (const std::string& out : left_out) {
    const auto identity = IdentityOfFolder(out);
    if (identity == root)
      return absl::InvalidArgumentError(
          absl::StrCat("the project's folder ", folder, " is MUSTER_HOME itself; accepted: another folder"));
    if (identity.has_value()) identities.push_back(*identity);
  }
  IgnorePatterns patterns;
  if (which == ListedFiles::kNotIgnored) {
    ASSIGN_OR_RETURN(patterns, ReadIgnorePatterns(real));
  }
  return ProjectLister(real, std::move(patterns), std::move(identities)).List();
}

std::string SyncTitle(const ProjectFiles& files) {
  const auto count =
      std::count_if(files.files.begin(), files.files.end(), [](const ProjectFile& file) { return !file.empty_folder; });
  return absl::StrCat("Syncing project (", DecimalSize(files.bytes), ", ", count, count == 1 ? " file)" : " files)");
}

}  // namespace muster
