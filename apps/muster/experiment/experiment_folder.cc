#include "apps/muster/experiment/experiment_folder.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<std::string> PathOfFile(const std::string& path) {
  std::error_code error;
  fs::path folder = fs::absolute(path.empty() ? "." : path, error).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // for "there/." and "there/"
  if (!fs::is_directory(folder, error)) {
    if (fs::is_regular_file(folder, error)) return folder.string();
    return absl::NotFoundError(
        absl::StrCat("--file ", path, ": no such file; accepted is an experiment file, or a folder with muster.yml"));
  }
  ASSIGN_OR_RETURN(const std::string found, FindExperimentFile(folder.string()));
  return (folder / found).string();
}

}  // namespace

absl::StatusOr<FolderFile> ReadExperimentFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string whole, PathOfFile(path));
  FolderFile read;
  read.folder = fs::path(whole).parent_path().string();
  read.name = fs::path(whole).filename().string();
  ASSIGN_OR_RETURN(read.text, PosixFileSystem().ReadFile(whole));
  ASSIGN_OR_RETURN(read.file, ParseExperimentFile(read.text, read.name));
  return read;
}

absl::StatusOr<std::string> ProjectHere() {
  const absl::StatusOr<FolderFile> here = ReadExperimentFile("");
  if (here.ok()) return here->file.project;
  if (absl::IsNotFound(here.status())) return "";
  return here.status();
}

std::string SupervisedElsewhereText() {
  const absl::StatusOr<FolderFile> here = ReadExperimentFile("");
  if (!here.ok() || here->file.hosts.supervisor.empty() || here->file.hosts.supervisor == "here") return "";
  const std::string& host = here->file.hosts.supervisor;
  return absl::StrCat("; those that ", host, " supervises are there: muster ls ", host, ":");
}

}  // namespace muster
