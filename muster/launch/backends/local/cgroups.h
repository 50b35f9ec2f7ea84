// Limits the CPU and memory of a run's tasks with control groups (cgroup v2,
// linux/Documentation/admin-guide/cgroup-v2.rst). It makes a group muster-RUNID below one in which this process may
// make groups, and in it one group per task. A task enters its group between fork and exec, so that none of it runs
// outside. The kernel then throttles, and kills, all of the task at once. Not thread-safe; Open and Remove block for
// milliseconds.
//
// Groups are made in this process's own group (delegated to a container, or by systemd to a unit or a user), or in the
// nearest possible one above it. Open tries that out with a child before anybody relies on it, because only then does
// it show that a group with processes of its own can't hand on controllers, or that processes can't be moved out of a
// session's group.
//
// The launcher holds a lock (flock) on the run's group folder while it lives, so that the next launcher can recognise
// and remove groups that a killed one left behind.
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

// Returns the folders in which a process may find its groups, nearest first: its own group, then those above it, as far
// as they are visible. Takes the texts of /proc/self/mountinfo and /proc/self/cgroup. Empty without cgroup v2.
std::vector<std::string> CgroupFolders(const std::string& mountinfo, const std::string& own_groups);

// Returns the file in which the kernel counts the processes of this process's own control group that it has killed for
// want of memory ("oom_kill"): memory.events of cgroup v2, otherwise memory.oom_control of v1. Takes what CgroupFolders
// takes; empty if there is none.
std::string OomCounterFile(const std::string& mountinfo, const std::string& own_groups);

// Returns the number after `name` in a file of lines "name number" (memory.events); 0 if the name is missing.
int64_t CgroupCounter(const std::string& text, const std::string& name);

// Returns the cpu.max text for that many cores: "150000 100000" (µs of each 100 ms).
std::string CpuMaxText(double cpus);

class Cgroups {
 public:
  // Finds a place that has the memory controller, makes the run's group there and removes leftovers beside it.
  // Unavailable, with the reason, if no place works. `process_folder` has the two files that CgroupFolders reads. The
  // process must have no other threads, since it forks.
  static absl::StatusOr<std::unique_ptr<Cgroups>> Open(const std::string& run_id,
                                                       const std::string& process_folder = "/proc/self");
  // Goes on with the groups of an object whose process has died: its place(), and a duplicate of its lock_fd(), which
  // it takes over.
  static std::unique_ptr<Cgroups> Resume(const std::string& place, int lock);
  // Remove() must be called first.
  ~Cgroups();
  Cgroups(const Cgroups&) = delete;
  Cgroups& operator=(const Cgroups&) = delete;

  // Returns whether CPU limits work, too.
  bool limits_cpus() const { return limits_cpus_; }

  // Makes the group of a task, or reuses the one of its previous life, and sets its limits. Returns the descriptor to
  // which a process writes "0" to enter the group (cgroup.procs). The caller must close it; programs don't inherit it.
  absl::StatusOr<int> Enter(const std::string& task, const ProcessLimits& limits);
  // Returns whether the task's group exceeded its memory since the last Enter, upon which all of it was killed.
  bool WasOverMemory(const std::string& task) const;
  std::string Folder(const std::string& task) const;
  // Returns how often the task's group was at its memory limit and nothing could be reclaimed.
  int64_t Ooms(const std::string& task) const;
  // A task of the object before goes on, which had so many Ooms at its Enter.
  void Resume(const std::string& task, int64_t ooms) { ooms_before_[task] = ooms; }
  std::string place() const;
  int lock_fd() const { return lock_; }

  // Kills all processes that are still in the groups, also those that left their process group, and removes the groups.
  void Remove();

 private:
  Cgroups(std::string folder, int lock) : folder_(std::move(folder)), lock_(lock) {}
  // `may_change`: may enable controllers in `parent` for the groups below it.
  static absl::StatusOr<std::unique_ptr<Cgroups>> OpenBelow(const std::string& parent, const std::string& run_id,
                                                            bool may_change);
  // Tries out, in the run's own new group, whether this place does what is needed.
  [[nodiscard]] absl::Status TryOut(bool cpu);

  const std::string folder_;  // muster-RUNID
  int lock_;                  // of folder_, held; -1 once removed
  bool limits_cpus_ = false;
  std::map<std::string, int64_t> ooms_before_;  // by task: at Enter
};

}  // namespace muster
