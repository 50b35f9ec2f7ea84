#include "muster/launch/project/build.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/absl_view.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/quoted.h"
#include "muster/launch/project/project_tree.h"
#include "muster/launch/project/remove_folder.h"
#include "muster/launch/project/sha256.h"
#include "muster/launch/system/shell_word.h"

namespace muster {
namespace {

// Length of the part of a build's key that names its folder. Programs' first lines contain that name, and systems cut
// them at 127 bytes.
constexpr size_t kBuildKeyDigits = 20;

// Names in a build's folder.
constexpr char kBuildCode[] = "code";
constexpr char kBuildEnvironment[] = "environment";

// The virtual environment that a file asks for.
struct FrameworkEnvironment {
  std::string key;      // of the file, for messages
  std::string name;     // "tensorflow-1.2.1-gpu"
  std::string package;  // for pip: "tensorflow-gpu==1.2.1"
};

// Since 2.12, tensorflow-gpu is a package that only tells users to install tensorflow.
bool HasGpuPackage(const std::string& version) {
  const std::vector<std::string> parts = absl::StrSplit(version, '.');
  int major = 0;
  int minor = 0;
  if (!absl::SimpleAtoi(parts[0], &major)) return false;
  if (parts.size() > 1 && !absl::SimpleAtoi(parts[1], &minor)) minor = 0;
  return major < 2 || (major == 2 && minor < 12);
}

// Returns whether it can be the name of a folder and a word of a command.
bool IsBuildVersion(const std::string& version) {
  const auto allowed = [](char c) { return absl::ascii_isalnum(c) || absl::StrContains("._+!-", c); };
  return absl::ascii_isalnum(version[0]) && version.size() <= 100 &&
         std::all_of(version.begin(), version.end(), allowed);
}

absl::StatusOr<std::optional<FrameworkEnvironment>> EnvironmentOfFile(const ExperimentFile& file,
                                                                      const SubmitOptions& options) {
  if (!HasEnvironment(file, options)) return std::optional<FrameworkEnvironment>();
  const bool tensorflow = file.framework == Framework::kTensorflow;
  const std::string framework = tensorflow ? "tensorflow" : "pytorch";
  const std::string key = absl::StrCat("train.", framework, ".version");
  if (!IsBuildVersion(file.version))
    return absl::InvalidArgumentError(
        absl::StrCat(file.name, ": ", key, ": ", Quoted(file.version),
                     " isn't a version; accepted: one of the package index, like 2.15.0; --no-venv uses the python on "
                     "PATH as it is"));
  const char* package = !tensorflow                                       ? "torch"
                        : file.gpu_version && HasGpuPackage(file.version) ? "tensorflow-gpu"
                                                                          : "tensorflow";
  return FrameworkEnvironment{.key = key,
                              .name = absl::StrCat(framework, "-", file.version, file.gpu_version ? "-gpu" : ""),
                              .package = absl::StrCat(package, "==", file.version)};
}

std::string BuildKey(const ExperimentFile& file, const std::string& tree, const std::string& environment) {
  Sha256 sha;
  sha.Add("muster build 1\n");
  sha.AddWithLength(tree);
  sha.AddWithLength(environment);
  for (const std::string& command : file.install) sha.AddWithLength(command);
  return absl::BytesToHexString(sha.Finish()).substr(0, kBuildKeyDigits);
}

// The folders of an experiment's build; empty if it has none.
struct BuildPlaces {
  std::optional<FrameworkEnvironment> environment;
  std::string environment_folder;  // shared by all with this version
  std::string build_folder;        // with what `install` does
};

absl::StatusOr<BuildPlaces> PlacesOfBuild(const ExperimentFile& file, const std::string& tree,
                                          const SubmitOptions& options, const Home& home) {
  BuildPlaces places;
  ASSIGN_OR_RETURN(places.environment, EnvironmentOfFile(file, options));
  const std::string name = places.environment.has_value() ? places.environment->name : "";
  if (!name.empty()) places.environment_folder = JoinPath(home.environments(), name);
  if (!file.install.empty()) places.build_folder = JoinPath(home.builds(), BuildKey(file, tree, name));
  return places;
}

// Uses printf because echo changes backslashes in some shells.
std::string SayInBuild(const std::string& text) { return absl::StrCat("printf '%s\\n' ", QuotedWord(text)); }

// Returns `command`, followed on failure by printing `lines` (each a shell word) and exiting.
std::string OrSayInBuild(const std::string& command, const std::vector<std::string>& lines) {
  std::string text = absl::StrCat(command, " || {\n");
  for (const std::string& line : lines) absl::StrAppend(&text, "  printf '%s\\n' ", line, " >&2\n");
  return absl::StrCat(text, "  exit 1\n}");
}

void AddEnvironmentCommands(const ExperimentFile& file, const FrameworkEnvironment& environment,
                            const std::string& folder, std::vector<std::string>& commands) {
  constexpr char kAsItIs[] = "muster:   use the python on PATH as it is: muster train --no-venv";
  const std::string python = QuotedWord(folder + "/bin/python");
  commands.push_back(SayInBuild(absl::StrCat("muster: makes the virtual environment ", environment.name, " in ", folder,
                                             ", once for all experiments with this version")));
  const std::string venv = absl::StrCat("python3 -m venv ", QuotedWord(folder));
  commands.push_back(SayInBuild("$ " + venv));
  commands.push_back(OrSayInBuild(
      venv, {QuotedWord("muster: no virtual environment can be made. What to do: install python3 with its module venv"),
             QuotedWord("muster:   (Debian: apt install python3-venv), or"), QuotedWord(kAsItIs)}));
  const std::string pip = absl::StrCat("-m pip install --disable-pip-version-check --no-input --progress-bar off ",
                                       QuotedWord(environment.package));
  commands.push_back(SayInBuild("$ python " + pip));
  commands.push_back(OrSayInBuild(
      absl::StrCat(python, " ", pip),
      {absl::StrCat("\"muster: ", environment.package, " can't be installed for $(", python,
                    " -V 2>&1): pip says above why\""),
       QuotedWord(absl::StrCat("muster: what to do: name a version that exists for this Python (", file.name, ", ",
                               environment.key, "), or")),
       QuotedWord("muster:   put the python3 that the version was made for first on PATH, or"), QuotedWord(kAsItIs)}));
}

// A build gets an environment of its own, because what `install` adds must not reach other experiments. It shares the
// files: pip doesn't write into files but makes new ones. Programs contain their environment's path.
constexpr char kAdaptPrograms[] = R"(import os, sys
old, new = (os.fsencode(folder) for folder in sys.argv[1:])
for entry in os.scandir(os.path.join(new, b"bin")):
    if entry.is_file(follow_symlinks=False):
        with open(entry.path, "rb") as file:
            text = file.read()
        if old in text and b"\0" not in text:
            mode = entry.stat().st_mode
            os.unlink(entry.path)
            with open(entry.path, "wb") as file:
                file.write(text.replace(old, new))
            os.chmod(entry.path, mode)
)";

void AddOwnEnvironmentCommands(const std::string& from, const std::string& to, std::vector<std::string>& commands) {
  const std::string both = absl::StrCat(QuotedWord(from), " ", QuotedWord(to));
  commands.push_back(SayInBuild("muster: copies the environment, for what install adds to it"));
  commands.push_back(
      absl::StrCat("cp -al ", both, " 2>/dev/null || { rm -rf ", QuotedWord(to), " && cp -a ", both, "; }"));
  commands.push_back(
      absl::StrCat("rm -f ", QuotedWord(JoinPath(to, kFolderLockName)), " ", QuotedWord(JoinPath(to, kBuildDoneName))));
  commands.push_back(absl::StrCat(QuotedWord(to + "/bin/python"), " -c ", QuotedWord(kAdaptPrograms), " ", both));
  commands.push_back(
      absl::StrCat("export VIRTUAL_ENV=", QuotedWord(to), " PATH=", QuotedWord(to + "/bin"), ":\"$PATH\""));
  commands.emplace_back("unset PYTHONHOME");
}

bool IsBuilt(const std::string& folder) {
  std::error_code error;
  return std::filesystem::exists(JoinPath(folder, kBuildDoneName), error);
}

// `muster gc` looks at the folder's time.
absl::StatusOr<bool> UseBuilt(const std::string& folder) {
  const std::string above = std::filesystem::path(folder).parent_path();
  ASSIGN_OR_RETURN(const FolderLock instant, FolderLock::Take(above, kInstantLockWait));
  if (!IsBuilt(folder)) return false;
  if (utimensat(AT_FDCWD, folder.c_str(), nullptr, 0) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot set the time of ", folder));
  return true;
}

absl::Status EmptyBuildFolder(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, PosixFileSystem().ListDirectory(folder));
  for (const std::string& name : names)
    if (name != kFolderLockName) RETURN_IF_ERROR(RemoveFolder(JoinPath(folder, name)));
  return absl::OkStatus();
}

// Makes what is marked survive a loss of power.
std::string SyncBuildCommand(const std::string& folder) {
  return absl::StrCat("sync -f ", QuotedWord(folder), " 2>/dev/null || sync");
}

}  // namespace

bool HasEnvironment(const ExperimentFile& file, const SubmitOptions& options) {
  const bool of_python = file.framework == Framework::kTensorflow || file.framework == Framework::kPytorch;
  return of_python && !options.no_venv && !file.version.empty();
}

absl::StatusOr<BuildPlan> PlanBuild(const ExperimentFile& file, const std::string& tree, const SubmitOptions& options,
                                    const Home& home) {
  ASSIGN_OR_RETURN(const BuildPlaces places, PlacesOfBuild(file, tree, options, home));
  const bool installs = !places.build_folder.empty();
  BuildPlan plan{.environment_folder = places.environment_folder, .code = JoinPath(home.trees(), tree)};
  if (installs) {
    plan.code = JoinPath(places.build_folder, kBuildCode);
    plan.directory = plan.code;
    if (places.environment.has_value()) plan.environment_folder = JoinPath(places.build_folder, kBuildEnvironment);
    plan.done_mark = JoinPath(places.build_folder, kBuildDoneName);
    ASSIGN_OR_RETURN(const bool built, UseBuilt(places.build_folder));
    if (built) return plan;
  }
  if (places.environment.has_value()) {
    if (!installs) plan.done_mark = JoinPath(places.environment_folder, kBuildDoneName);
    ASSIGN_OR_RETURN(const bool made, UseBuilt(places.environment_folder));
    if (made && !installs) return plan;
    if (!made) {
      plan.folders.push_back(places.environment_folder);
      AddEnvironmentCommands(file, *places.environment, places.environment_folder, plan.commands);
      plan.commands.push_back(SyncBuildCommand(places.environment_folder));
    }
    if (!made && installs)
      plan.commands.push_back(absl::StrCat(": > ", QuotedWord(JoinPath(places.environment_folder, kBuildDoneName))));
  }
  if (installs) {
    plan.folders.push_back(places.build_folder);
    if (places.environment.has_value())
      AddOwnEnvironmentCommands(places.environment_folder, plan.environment_folder, plan.commands);
    for (const std::string& command : file.install) {
      plan.commands.push_back(SayInBuild("$ " + command));
      plan.commands.push_back(command);
    }
    plan.commands.push_back(SyncBuildCommand(places.build_folder));
  }
  plan.needed = !plan.folders.empty();
  return plan;
}

absl::StatusOr<std::vector<FolderLock>> PrepareBuild(const BuildPlan& plan, const Home& home, const std::string& tree) {
  std::vector<FolderLock> rights;
  for (const std::string& folder : plan.folders) {
    const std::string above = std::filesystem::path(folder).parent_path();
    // Keeps `muster gc` from removing the folder between being made and being locked.
    ASSIGN_OR_RETURN(const FolderLock instant, FolderLock::Take(above, kInstantLockWait));
    auto right = FolderLock::Take(folder, absl::ZeroDuration());
    if (absl::IsUnavailable(right.status()))
      return absl::UnavailableError(absl::StrCat("another experiment is building ", folder));
    if (!right.ok()) return right.status();
    if (IsBuilt(folder)) return absl::UnavailableError(absl::StrCat(folder, " has just been built"));
    rights.push_back(*std::move(right));
  }
  for (const std::string& folder : plan.folders) RETURN_IF_ERROR(EmptyBuildFolder(folder));
  if (!plan.directory.empty()) RETURN_IF_ERROR(CopyTree(JoinPath(home.trees(), tree), plan.directory));
  return rights;
}

absl::Status MarkBuilt(const BuildPlan& plan) { return WriteFileAtomically(PosixFileSystem(), plan.done_mark, {}); }

absl::StatusOr<std::vector<std::string>> BuildFoldersOf(const ExperimentFile& file, const std::string& tree,
                                                        const SubmitOptions& options, const Home& home) {
  ASSIGN_OR_RETURN(const BuildPlaces places, PlacesOfBuild(file, tree, options, home));
  std::vector<std::string> folders;
  for (const std::string& folder : {places.environment_folder, places.build_folder})
    if (!folder.empty()) folders.push_back(folder);
  return folders;
}

}  // namespace muster
