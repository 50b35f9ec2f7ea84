// `muster once`: runs a script unless it has ended well before for this key on this host, with a folder of its own in
// MUSTER_SETUP_DIR. Started by muster for `setup` of an
// experiment file, not by users: --help doesn't name it.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "apps/muster/commands/command_table.h"
#include "apps/muster/commands/job/receive_place.h"
#include "apps/muster/terminal/usage_error.h"
#include "muster/base/clock.h"
#include "muster/base/files/file_system.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/base/status_macros.h"
#include "muster/launch/experiment/setup_plan.h"
#include "muster/launch/project/build.h"
#include "muster/launch/project/folder_lock.h"
#include "muster/launch/project/remove_folder.h"

namespace muster {
namespace {

constexpr char kOnceDescription[] = "Run a script once for a key on this host (run by muster for `setup`)";
// Between two looks whether another run has done it.
constexpr absl::Duration kLookAgain = absl::Seconds(1);
constexpr int kNotExecuted = 127;

absl::StatusOr<FolderLock> AwaitLock(const std::string& folder) {
  for (bool said = false;; said = true) {
    absl::StatusOr<FolderLock> lock = FolderLock::Take(folder, kLookAgain);
    if (!absl::IsUnavailable(lock.status())) return lock;
    if (!said) std::fprintf(stderr, "another run is setting up the same here: waiting for it\n");
  }
}

// Removes what a script that failed or was killed has left, but for the lock.
absl::Status Empty(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, PosixFileSystem().ListDirectory(folder));
  for (const std::string& name : names)
    if (name != kFolderLockName) RETURN_IF_ERROR(RemoveFolder(JoinPath(folder, name)));
  return absl::OkStatus();
}

// Returns its exit code, 128 + N for signal N.
absl::StatusOr<int> RunScript(const std::string& script) {
  const pid_t child = fork();
  if (child < 0) return absl::ErrnoToStatus(errno, "cannot start a process");
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
    _exit(kNotExecuted);
  }
  int status = 0;
  if (Uninterrupted([&] { return waitpid(child, &status, 0); }) < 0) return absl::ErrnoToStatus(errno, "cannot wait");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

absl::StatusOr<int> Once(const std::string& key, const std::string& script) {
  RETURN_IF_ERROR(CheckReceivedJob(key));
  ASSIGN_OR_RETURN(const ReceivePlace place, ReceivePlaceHere());
  const std::string folder = absl::StrCat(place.cache, "/setup/", key);
  RETURN_IF_ERROR(MakeCacheFolder(folder));
  RETURN_IF_ERROR(CheckOwnFolder(place.cache));
  const std::string mark = JoinPath(folder, kBuildDoneName);
  ASSIGN_OR_RETURN(const FolderLock lock, AwaitLock(folder));
  if (PosixFileSystem().Exists(mark)) {
    (void)utimensat(AT_FDCWD, mark.c_str(), nullptr, 0);  // tells that it is in use
    return 0;
  }
  RETURN_IF_ERROR(Empty(folder));
  SweepSetups(place, RealClock().Now());
  setenv(kSetupVariable, folder.c_str(), 1);
  ASSIGN_OR_RETURN(const int code, RunScript(script));
  if (code != 0) return code;
  RETURN_IF_ERROR(WriteFileAtomically(PosixFileSystem(), mark, {}));
  return 0;
}

}  // namespace

void AddOnceCommand(CLI::App& app, int& exit_code) {
  struct Flags {
    std::string key, script;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("once", kOnceDescription);
  command->group("");  // not in --help
  command->add_option("KEY", flags->key, "What the script depends on, as letters and digits")
      ->type_name("")
      ->required();
  command->add_option("SCRIPT", flags->script, "What /bin/sh runs")->type_name("")->required();
  command->callback([flags, &exit_code] {
    const absl::StatusOr<int> code = Once(flags->key, flags->script);
    exit_code = code.ok() ? *code : UsageError("once", code.status());
  });
}

}  // namespace muster
