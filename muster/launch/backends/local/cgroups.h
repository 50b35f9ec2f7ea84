// CPU and memory limits of a run's tasks by control groups (cgroup v2, linux/Documentation/admin-guide/cgroup-v2.rst):
// a group muster-RUNID below one that this process may make groups in, and in it one a task, which a task enters
// between fork and exec, so that nothing of it runs outside. The kernel then does the rest: it slows down, and kills,
// all of the task at once. Not thread-safe; Open and Remove block for milliseconds.
//
// Where groups may be made: this process's own group (delegated to a container, or by systemd to a unit or a user), or
// the nearest one above it. Whether it really works is tried with a child before anybody relies on it: that a group
// with processes of its own can't hand controllers on, or that processes can't be moved out of a session's group, shows
// only then.
//
// The group's folder is locked (flock) while its launcher lives, so that the next one can tell groups that a killed
// launcher has left, and remove them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/launch/backends/backend.h"

namespace muster {

// Folders in which a process may find its groups, nearest first: its own group, then those above it, as far as they
// are visible. From the texts of /proc/self/mountinfo and /proc/self/cgroup; empty without cgroup v2.
std::vector<std::string> CgroupFolders(const std::string& mountinfo, const std::string& own_groups);

// The number behind `name` in a file of lines "name number" (memory.events); 0 if it isn't there.
int64_t CgroupCounter(const std::string& text, const std::string& name);

// What cpu.max gets for so many cores: "150000 100000" (µs of each 100 ms).
std::string CpuMaxText(double cpus);

class Cgroups {
 public:
  // Finds a place that has the memory controller, makes the run's group there and removes leftovers beside it.
  // Unavailable, saying why, if there is none. `process_folder` has the two files that CgroupFolders reads. The process
  // must have no other threads, since it forks.
  static absl::StatusOr<std::unique_ptr<Cgroups>> Open(const std::string& run_id,
                                                       const std::string& process_folder = "/proc/self");
  // Remove() first.
  ~Cgroups();
  Cgroups(const Cgroups&) = delete;
  Cgroups& operator=(const Cgroups&) = delete;

  // Whether cores can be limited, too.
  bool limits_cpus() const { return limits_cpus_; }

  // Makes the group of a task, or takes the one of its life before, and gives it its limits. Returns the descriptor to
  // which a process writes "0" to enter it (cgroup.procs); the caller's to close, not inherited by programs.
  absl::StatusOr<int> Enter(const std::string& task, const ProcessLimits& limits);
  // True if the task's group wanted more than its memory since the last Enter, which kills all that is in it.
  bool WasOverMemory(const std::string& task) const;
  std::string Folder(const std::string& task) const;

  // Kills whatever is still in the groups, wherever it has fled to, and removes them.
  void Remove();

 private:
  Cgroups(std::string folder, int lock) : folder_(std::move(folder)), lock_(lock) {}
  // `may_change`: controllers may be handed on in `parent` that aren't yet.
  static absl::StatusOr<std::unique_ptr<Cgroups>> OpenBelow(const std::string& parent, const std::string& run_id,
                                                            bool may_change);
  // What a place must do for us, tried out in the run's own new group.
  [[nodiscard]] absl::Status TryOut(bool cpu);
  // How often the task's group was at the limit of its memory and nothing could be given back.
  int64_t Ooms(const std::string& task) const;

  const std::string folder_;  // muster-RUNID
  int lock_;                  // of folder_, held; -1 once removed
  bool limits_cpus_ = false;
  std::map<std::string, int64_t> ooms_before_;  // by task: at Enter
};

}  // namespace muster
