// The folder of one job's agent on its host: where those who want to attach find it, and what keeps a second agent of
// the job away. It is /tmp/muster-UID/agents/JOB, of this user alone. (/run/user/UID goes with the user's last login,
// which an agent must outlive.) A lock on the folder itself says that its agent lives, or that its guard still ends
// the tasks of a dead one; it also keeps systemd-tmpfiles away. Where a host may have several agents of one job, each
// has a folder of its own, JOB-N.
//
//   socket    where the agent listens
//   id        the MUSTER_AGENT_ID of its tasks, by which the next agent finds what this one and its guard have left
//   log       what it has to say beyond its streams
//   cluster   the addresses of all tasks, once one has moved (MUSTER_CLUSTER_FILE)
//   heard     counts while the agent hears its supervisor (MUSTER_HEARD_FILE)
//
// Used by one thread.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/os/private_folder.h"
#include "muster/transport/io/socket.h"

namespace muster {

// InvalidArgument unless a job's name has 1 to 64 letters, digits and '-'.
[[nodiscard]] absl::Status CheckAgentJob(const std::string& job);

class AgentFolder {
 public:
  static constexpr char kLogName[] = "log";
  static constexpr char kClusterName[] = "cluster";
  static constexpr char kHeardName[] = "heard";

  // Makes the folders above the job's own. `shared`: where all users may make folders. FailedPrecondition names what
  // isn't this user's own.
  static absl::StatusOr<AgentFolder> Open(const std::string& job, const std::string& shared = "/tmp");

  // Returns the jobs that have a folder: those of agents that run, and of some that were killed.
  static absl::StatusOr<std::vector<std::string>> Jobs(const std::string& shared = "/tmp");
  // Returns those of them that are folders of one job's agents: JOB, and JOB-N of each that `--place` has given its
  // own.
  static absl::StatusOr<std::vector<std::string>> PlacesOf(const std::string& job, const std::string& shared = "/tmp");

  // Makes the folder and takes its lock; held until this object is destroyed by all processes that have lock_fd().
  // Waits for at most `wait`. Unavailable: the job has an agent, or the guard of one.
  [[nodiscard]] absl::Status Lock(absl::Duration wait);
  // All that it holds, for a forked process that keeps it.
  std::vector<int> descriptors() const { return {agents_.fd(), lock_fd()}; }
  int lock_fd() const { return locked_.valid() ? locked_.fd() : -1; }

  // Listens on the socket, in place of one that a dead agent has left. The lock must be held. Non-blocking.
  absl::StatusOr<Socket> Listen() const;
  // Connects to the agent. NotFound: none listens. Blocks for at most 10 s.
  absl::StatusOr<Socket> Connect() const;
  // Returns the MUSTER_AGENT_ID of the job's agent, or of the last one; empty if none was. The lock must be held.
  absl::StatusOr<std::string> AgentId() const;
  // Writes it down. The lock must be held.
  [[nodiscard]] absl::Status SetAgentId(const std::string& id) const;
  // Opens the log to append to it, and makes the folder.
  absl::StatusOr<Socket> OpenLog() const;
  std::string PathOf(const std::string& file) const;

  // Lets one process of this user at a time start agents, whichever the job, until this object is destroyed.
  // Unavailable: another one takes longer than `wait`.
  [[nodiscard]] absl::Status LockStart(absl::Duration wait) const;

  // Removes the socket; with `all`, the folder and what is in it. The lock must be held.
  void Remove(bool all) const;

 private:
  AgentFolder(PrivateFolder agents, std::string job) : agents_(std::move(agents)), job_(std::move(job)) {}

  PrivateFolder agents_;
  std::string job_;
  Socket locked_;  // the folder's own descriptor, once locked
};

}  // namespace muster
