#include "muster/launch/backends/local/cgroups.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/check.h"
#include "muster/base/status_macros.h"
#include "muster/launch/backends/local/kernel_file.h"

namespace muster {
namespace {

constexpr char kRunGroupPrefix[] = "muster-";
// Group in which a place is tried out; no task has this name.
constexpr char kTryOutGroup[] = "try";
constexpr int64_t kCpuPeriodUs = 100'000;
constexpr int64_t kLeastQuotaUs = 1'000;  // the kernel accepts no less
// A group is empty within milliseconds after its processes were killed. A group with a process that hangs on a broken
// disk is left behind.
constexpr int kEmptyWithinTries = 20;
constexpr int kTryMs = 100;

std::string ReadControl(const std::string& path) { return ReadKernelFile(path).value_or(""); }

std::vector<std::string> ControlLines(const std::string& text) { return absl::StrSplit(text, '\n'); }

absl::Status WriteControl(const std::string& path, std::string_view text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, path);
  const ssize_t written = write(fd, text.data(), text.size());
  const int error = errno;
  close(fd);
  return written == static_cast<ssize_t>(text.size()) ? absl::OkStatus() : absl::ErrnoToStatus(error, path);
}

// Writes a control that older kernels and some builds lack.
absl::Status WriteControlIfThere(const std::string& path, std::string_view text) {
  const absl::Status written = WriteControl(path, text);
  return absl::IsNotFound(written) ? absl::OkStatus() : written;
}

bool ControlHasWord(const std::string& path, const std::string& word) {
  const std::vector<std::string> words = absl::StrSplit(ReadControl(path), absl::ByAnyChar(" \n"));
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Enables the controller for groups below `folder`. `may_change`: also if it isn't enabled yet.
absl::Status HandOn(const std::string& folder, const std::string& controller, bool may_change) {
  if (!ControlHasWord(absl::StrCat(folder, "/cgroup.controllers"), controller)) {
    return absl::UnavailableError(absl::StrCat(folder, " has no ", controller, " controller"));
  }
  const std::string control = absl::StrCat(folder, "/cgroup.subtree_control");
  if (ControlHasWord(control, controller)) return absl::OkStatus();
  if (!may_change) return absl::UnavailableError(absl::StrCat(folder, " doesn't pass on its ", controller));
  return WriteControl(control, absl::StrCat("+", controller));
}

// Waits until the group's processes are gone, at most kTryMs.
void AwaitChange(const std::string& folder) {
  const int fd = open(absl::StrCat(folder, "/cgroup.events").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  char text[256];
  if (read(fd, text, sizeof text) > 0 && std::string_view(text).find("populated 0") == std::string_view::npos) {
    pollfd changed = {fd, POLLPRI, 0};
    poll(&changed, 1, kTryMs);
  }
  close(fd);
}

void KillAndRemoveGroup(const std::string& folder) {
  // Exists since Linux 5.14. Before that, processes that left their process group are found by MUSTER_RUN_ID only.
  WriteControl(absl::StrCat(folder, "/cgroup.kill"), "1").IgnoreError();
  for (int tries = 0; tries < kEmptyWithinTries; ++tries) {
    if (rmdir(folder.c_str()) == 0 || errno != EBUSY) return;
    AwaitChange(folder);
  }
}

std::vector<std::string> GroupsIn(const std::string& folder) {
  std::vector<std::string> names;
  DIR* directory = opendir(folder.c_str());
  if (directory == nullptr) return names;
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  closedir(directory);
  return names;
}

bool IsRunGroup(const std::string& name) {
  if (!name.starts_with(kRunGroupPrefix)) return false;
  const std::string id = name.substr(std::strlen(kRunGroupPrefix));
  return !id.empty() && std::all_of(id.begin(), id.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
}

// Takes the lock of a run's group; -1 if another process has it or the group is gone.
int LockGroup(const std::string& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return -1;
  struct stat locked, there;
  if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &locked) == 0 && stat(folder.c_str(), &there) == 0 &&
      locked.st_ino == there.st_ino) {
    return fd;
  }
  close(fd);
  return -1;
}

void RemoveGroupLeftovers(const std::string& parent) {
  for (const std::string& name : GroupsIn(parent)) {
    if (!IsRunGroup(name)) continue;
    const std::string folder = absl::StrCat(parent, "/", name);
    const int lock = LockGroup(folder);
    if (lock < 0) continue;
    for (const std::string& task : GroupsIn(folder)) KillAndRemoveGroup(absl::StrCat(folder, "/", task));
    KillAndRemoveGroup(folder);
    close(lock);
  }
}

struct GroupMount {
  std::string root, folder;  // which part of the tree is mounted where; no folder: none is
};

// Returns whether a list "cpu,memory" has the controller.
bool HasController(const std::string& list, const std::string& controller) {
  const std::vector<std::string> words = absl::StrSplit(list, ',');
  return std::find(words.begin(), words.end(), controller) != words.end();
}

// Finds the hierarchy of a type (" - cgroup2 "), with v1 the one that has `controller`.
GroupMount MountOf(const std::string& type, const std::string& controller, const std::string& mountinfo) {
  for (const std::string& line : ControlLines(mountinfo)) {
    const std::vector<std::string> fields = absl::StrSplit(line, ' ');
    if (fields.size() < 10 || !absl::StrContains(line, type)) continue;
    if (controller.empty() || HasController(fields.back(), controller)) return {fields[3], fields[4]};
  }
  return {};
}

// Returns the process's own group in the mounted tree and those above it, nearest first. `which`: what its line in
// /proc/PID/cgroup has between its first and its last colon: "" or a controller.
std::vector<std::string> FoldersIn(const GroupMount& mount, const std::string& which, const std::string& own_groups) {
  if (mount.folder.empty()) return {};
  std::string own;
  for (const std::string& line : ControlLines(own_groups)) {
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() == 3 && HasController(fields[1], which)) own = fields[2];
  }
  // A container may see only a part of the tree. Its own group is then named from the root of what it sees, or has no
  // name at all ("/../..").
  if (mount.root != "/") own = own.starts_with(mount.root) ? own.substr(mount.root.size()) : "";
  if (own == "/" || !own.starts_with('/') || own.starts_with("/..")) own = "";
  std::vector<std::string> folders;
  for (; !own.empty(); own.resize(own.rfind('/'))) folders.push_back(absl::StrCat(mount.folder, own));
  folders.push_back(mount.folder);
  return folders;
}

// Returns whether a process may enter: the error of a child that has tried.
absl::Status TryToEnter(int procs) {
  const pid_t pid = fork();
  if (pid < 0) return absl::ErrnoToStatus(errno, "cannot start a process");
  if (pid == 0) _exit(write(procs, "0", 1) == 1 ? 0 : errno);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (status == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(WIFEXITED(status) ? WEXITSTATUS(status) : EINTR, "a process can't be moved there");
}

}  // namespace

std::vector<std::string> CgroupFolders(const std::string& mountinfo, const std::string& own_groups) {
  return FoldersIn(MountOf(" - cgroup2 ", "", mountinfo), "", own_groups);
}

std::string OomCounterFile(const std::string& mountinfo, const std::string& own_groups) {
  const std::vector<std::string> folders = CgroupFolders(mountinfo, own_groups);
  const std::string events = folders.empty() ? "" : absl::StrCat(folders.front(), "/memory.events");
  if (!events.empty() && ReadKernelFile(events).has_value()) return events;
  const std::vector<std::string> first = FoldersIn(MountOf(" - cgroup ", "memory", mountinfo), "memory", own_groups);
  return first.empty() ? "" : absl::StrCat(first.front(), "/memory.oom_control");
}

int64_t CgroupCounter(const std::string& text, const std::string& name) {
  for (const std::string& line : ControlLines(text)) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    int64_t value = 0;
    if (words.size() == 2 && words[0] == name && absl::SimpleAtoi(words[1], &value)) return value;
  }
  return 0;
}

std::string CpuMaxText(double cpus) {
  const int64_t quota = std::max(kLeastQuotaUs, static_cast<int64_t>(std::llround(cpus * kCpuPeriodUs)));
  return absl::StrCat(quota, " ", kCpuPeriodUs);
}

absl::StatusOr<std::unique_ptr<Cgroups>> Cgroups::Open(const std::string& run_id, const std::string& process_folder) {
  const std::vector<std::string> parents = CgroupFolders(ReadControl(absl::StrCat(process_folder, "/mountinfo")),
                                                         ReadControl(absl::StrCat(process_folder, "/cgroup")));
  absl::Status why = absl::UnavailableError("there is no cgroup v2 here");
  for (const std::string& parent : parents) {
    // The groups in between belong to others (systemd), which may undo changes there.
    auto opened = OpenBelow(parent, run_id, parent == parents.front() || parent == parents.back());
    if (opened.ok()) return opened;
    if (parent == parents.front()) why = absl::UnavailableError(opened.status().message());
  }
  return why;
}

absl::StatusOr<std::unique_ptr<Cgroups>> Cgroups::OpenBelow(const std::string& parent, const std::string& run_id,
                                                            bool may_change) {
  RETURN_IF_ERROR(HandOn(parent, "memory", may_change));
  const bool cpu = HandOn(parent, "cpu", may_change).ok();
  RemoveGroupLeftovers(parent);
  const std::string folder = absl::StrCat(parent, "/", kRunGroupPrefix, run_id);
  int lock = -1;
  // Between mkdir and lock, a launcher that removes leftovers may take the new group for one.
  for (int tries = 0; lock < 0 && tries < kEmptyWithinTries; ++tries) {
    if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) return absl::ErrnoToStatus(errno, folder);
    lock = LockGroup(folder);
  }
  if (lock < 0) return absl::UnavailableError(absl::StrCat(folder, " belongs to another launcher"));
  std::unique_ptr<Cgroups> groups(new Cgroups(folder, lock));
  const absl::Status works = groups->TryOut(cpu);
  if (works.ok()) return groups;
  groups->Remove();
  return works;
}

std::unique_ptr<Cgroups> Cgroups::Resume(const std::string& place, int lock) {
  std::unique_ptr<Cgroups> groups(new Cgroups(place.substr(1), lock));
  groups->limits_cpus_ = place[0] == '+';
  return groups;
}

std::string Cgroups::place() const { return absl::StrCat(limits_cpus_ ? "+" : "-", folder_); }

Cgroups::~Cgroups() { MUSTER_CHECK(lock_ < 0); }

absl::Status Cgroups::TryOut(bool cpu) {
  RETURN_IF_ERROR(HandOn(folder_, "memory", /*may_change=*/true));
  limits_cpus_ = cpu && HandOn(folder_, "cpu", /*may_change=*/true).ok();
  ASSIGN_OR_RETURN(const int procs, Enter(kTryOutGroup, {.cpus = 1, .mem_bytes = int64_t{1} << 30}));
  const absl::Status entered = TryToEnter(procs);
  close(procs);
  KillAndRemoveGroup(Folder(kTryOutGroup));
  ooms_before_.erase(kTryOutGroup);
  return entered;
}

absl::StatusOr<int> Cgroups::Enter(const std::string& task, const ProcessLimits& limits) {
  const std::string folder = Folder(task);
  if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) return absl::ErrnoToStatus(errno, folder);
  ooms_before_[task] = Ooms(task);
  const bool limited = limits.mem_bytes.has_value();
  RETURN_IF_ERROR(WriteControl(absl::StrCat(folder, "/memory.max"), limited ? absl::StrCat(*limits.mem_bytes) : "max"));
  RETURN_IF_ERROR(WriteControlIfThere(absl::StrCat(folder, "/memory.swap.max"), limited ? "0" : "max"));
  RETURN_IF_ERROR(WriteControlIfThere(absl::StrCat(folder, "/memory.oom.group"), "1"));
  if (limits_cpus_) {
    RETURN_IF_ERROR(WriteControl(absl::StrCat(folder, "/cpu.max"), limits.cpus.has_value()
                                                                       ? CpuMaxText(*limits.cpus)
                                                                       : absl::StrCat("max ", kCpuPeriodUs)));
  }
  const std::string procs = absl::StrCat(folder, "/cgroup.procs");
  const int fd = open(procs.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, procs);
  return fd;
}

// Counts events of the group's own limit (oom). oom_kill would also count processes killed because the whole machine
// had no memory left.
int64_t Cgroups::Ooms(const std::string& task) const {
  return CgroupCounter(ReadControl(absl::StrCat(Folder(task), "/memory.events")), "oom");
}

bool Cgroups::WasOverMemory(const std::string& task) const {
  const auto before = ooms_before_.find(task);
  return before != ooms_before_.end() && Ooms(task) > before->second;
}

std::string Cgroups::Folder(const std::string& task) const { return absl::StrCat(folder_, "/", task); }

void Cgroups::Remove() {
  if (lock_ < 0) return;
  for (const std::string& task : GroupsIn(folder_)) KillAndRemoveGroup(Folder(task));
  KillAndRemoveGroup(folder_);
  close(std::exchange(lock_, -1));
}

}  // namespace muster
