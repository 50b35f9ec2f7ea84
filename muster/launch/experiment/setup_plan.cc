#include "muster/launch/experiment/setup_plan.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/launch/experiment/experiment_plan.h"
#include "muster/launch/project/file_copy.h"
#include "muster/launch/project/sha256.h"

namespace muster {
namespace {

constexpr size_t kKeyDigits = 32;

}  // namespace

absl::StatusOr<std::string> SetupKey(const ExperimentFile& file, const std::string& folder, const std::string& tree) {
  if (file.setup.run.empty()) return "";
  Sha256 sha;
  for (const std::string& command : file.setup.run) sha.AddWithLength(command);
  if (file.setup.files.empty()) sha.AddWithLength(tree);
  for (const std::string& path : file.setup.files) {
    std::error_code error;
    const std::filesystem::file_type type = std::filesystem::symlink_status(JoinPath(folder, path), error).type();
    if (type == std::filesystem::file_type::directory || type == std::filesystem::file_type::symlink)
      return absl::InvalidArgumentError(
          absl::StrCat(file.name, ": train.setup.files: ", path, " is ",
                       type == std::filesystem::file_type::directory ? "a folder" : "a symbolic link",
                       "; accepted are plain files (without files: the whole project counts)"));
    const absl::StatusOr<FileContents> contents = HashFile(JoinPath(folder, path));
    if (!contents.ok())
      return absl::InvalidArgumentError(absl::StrCat(file.name, ": train.setup.files: ", path,
                                                     " can't be read: ", std::string(contents.status().message())));
    sha.AddWithLength(path);
    sha.AddWithLength(contents->digest);
  }
  return absl::BytesToHexString(sha.Finish()).substr(0, kKeyDigits);
}

std::string SetupVariableLines(const std::string& key) {
  if (key.empty()) return "";
  return absl::StrCat(kSetupVariable, "=\"${XDG_CACHE_HOME:-$HOME/.cache}/muster/setup/", key, "\"; export ",
                      kSetupVariable, "\n");
}

std::vector<std::string> SetupCommand(const ExperimentFile& file, const std::string& key, const std::string& muster) {
  return {muster, "once", key, ShellScript(file.setup.run)};
}

}  // namespace muster
