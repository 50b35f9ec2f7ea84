#include "muster/launch/backends/local/mounts.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// struct mount_attr of linux/mount.h (since 5.12), a header that can't be included together with sys/mount.h.
struct MountAttributes {
  uint64_t set, clear, propagation, user_namespace;
};
constexpr uint64_t kReadOnlyMount = 1;
constexpr unsigned kWithSubmounts = 0x8000;  // AT_RECURSIVE

// Includes all that is mounted below, unlike mount(MS_REMOUNT).
int MakeReadOnly(const char* path) {
  MountAttributes attributes = {kReadOnlyMount, 0, 0, 0};
  return static_cast<int>(syscall(SYS_mount_setattr, AT_FDCWD, path, kWithSubmounts, &attributes, sizeof attributes));
}

// Makes later mounts visible to this process and its children only.
int LeaveMountNamespace() {
  if (unshare(CLONE_NEWNS) != 0) return -1;
  return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
}

bool IsThere(const std::string& path, bool* is_folder) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return false;
  *is_folder = S_ISDIR(info.st_mode);
  return true;
}

absl::Status CheckPaths(const ProcessMount& mount) {
  bool host_is_folder = false, path_is_folder = false;
  if (!IsThere(mount.host, &host_is_folder)) {
    return absl::NotFoundError(absl::StrCat("'", mount.host, "', which tasks should see, isn't on this machine"));
  }
  const char* kind = host_is_folder ? "folder" : "file";
  if (!IsThere(mount.path, &path_is_folder) || host_is_folder != path_is_folder) {
    return absl::NotFoundError(absl::StrCat("'", mount.host, "' can't be shown to tasks at '", mount.path,
                                            "', where there is no ", kind,
                                            " on this machine: make an empty one, or use the same path"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status TryMounts() {
  const pid_t pid = fork();
  if (pid < 0) return absl::ErrnoToStatus(errno, "cannot start a process");
  if (pid == 0) {
    if (LeaveMountNamespace() != 0) _exit(errno);
    if (mount("/", "/", nullptr, MS_BIND, nullptr) != 0 || MakeReadOnly("/") != 0) _exit(errno);
    _exit(0);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (status == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(WIFEXITED(status) ? WEXITSTATUS(status) : EINTR, "making a mount namespace");
}

absl::StatusOr<std::vector<ProcessMount>> MountsFor(const std::vector<ProcessMount>& wanted,
                                                    const absl::Status& permitted, std::string* note) {
  std::vector<ProcessMount> mounts;
  for (const ProcessMount& mount : wanted) {
    if (const absl::Status there = CheckPaths(mount); !there.ok()) return there;
    if (mount.host == mount.path && mount.writable) continue;
    if (permitted.ok()) {
      mounts.push_back(mount);
    } else if (mount.host == mount.path) {
      *note = absl::StrCat("volumes are not read-only for tasks, since this process may not mount (",
                           std::string(permitted.message()), "): don't write to them");
    } else {
      return absl::PermissionDeniedError(absl::StrCat(
          "'", mount.host, "' can't be shown to tasks at '", mount.path, "', since this process may not mount (",
          std::string(permitted.message()), "): use the same path, or run as root"));
    }
  }
  return mounts;
}

int EnterMounts(const std::vector<ProcessMount>& mounts, int* failed) {
  *failed = -1;
  if (LeaveMountNamespace() != 0) return errno;
  for (const ProcessMount& one : mounts) {
    ++*failed;
    if (mount(one.host.c_str(), one.path.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) return errno;
    if (!one.writable && MakeReadOnly(one.path.c_str()) != 0) return errno;
  }
  return 0;
}

}  // namespace muster
