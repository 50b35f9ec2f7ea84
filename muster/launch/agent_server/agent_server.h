// An agent on its host: listens on a Unix socket, speaks the protocol with the supervisor that attaches there
// (docs/agents.md), and runs the tasks as children of a Keeper, which has all that the agent's next life needs. Works
// in the FdLoop of its owner, which calls OnTime after each round. Used by the loop's thread; the process must have no
// others, since it forks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/files/counter_file.h"
#include "muster/launch/agent/agent_connection.h"
#include "muster/launch/agent/agent_limits.h"
#include "muster/launch/agent/command_executor.h"
#include "muster/launch/agent/supervisor_link.h"
#include "muster/launch/agent_server/agent_folder.h"
#include "muster/launch/agent_server/backend_executor.h"
#include "muster/launch/agent_server/kept_journal.h"
#include "muster/launch/agent_server/supervisor_dialer.h"
#include "muster/launch/agent_server/usage_report.h"
#include "muster/launch/backends/backend.h"
#include "muster/launch/keeper/keeper.h"
#include "muster/launch/system/fd_loop.h"
#include "muster/transport/io/socket.h"

namespace muster {

struct AgentServerOptions {
  std::string job;
  AgentLimits limits;
  std::string address;      // of this host, see BackendExecutorOptions
  std::string muster = "";  // likewise
  // The agent connects to its supervisor, as the file says (rendezvous.h), under this name of its host. Empty: it only
  // listens on its socket.
  std::string rendezvous = "";
  std::string host = "";
  bool supervisor_in_job = false;                              // HostPlan::in_job
  std::function<void(const std::string& line)> log = nullptr;  // takes a line for the agent's log; empty: nobody does
  BackendOptions backend;                                      // the server sets run_id, note, address and clock
  const Clock* clock = &BootClock();                           // borrowed
  // Called when the supervisor has wanted the end and everything has ended, before the job's folder goes. Empty: no
  // call.
  std::function<void()> job_ended;
};

class AgentServer {
 public:
  // What lives of an agent share. The folder must be locked; it has the listening socket, which outlives them, too.
  struct Place {
    AgentFolder folder;
    Socket listening;
    // A pipe that nobody writes into, whose end asks for the agent's; invalid: there is none. The owner watches it.
    Socket until_closed = {};
  };
  // Listens in a folder that is locked.
  static absl::StatusOr<Place> Open(AgentFolder folder);
  // Begins the first life: kills what an agent that died with its keeper has left there, and forks a keeper. Its
  // `next_life` (KeeperOptions) must Start with the same options and place.
  static absl::StatusOr<std::unique_ptr<Keeper>> ForkKeeper(const std::string& job, const Place& place,
                                                            std::function<int(std::unique_ptr<Keeper>)> next_life);
  // Borrows `place` and `loop`, which must outlive it.
  static absl::StatusOr<std::unique_ptr<AgentServer>> Start(AgentServerOptions options, const Place& place,
                                                            std::unique_ptr<Keeper> keeper, FdLoop& loop);
  // Kills what is left of its tasks, and waits until they and the keeper are gone.
  ~AgentServer();
  AgentServer(const AgentServer&) = delete;
  AgentServer& operator=(const AgentServer&) = delete;

  // Must be called after each round of the loop, which must wait no longer than until deadline().
  void OnTime();
  absl::Time deadline() const;
  // Ends as if no supervisor had answered for the grace: asks the tasks to end and kills them 3 s later.
  void EndNow();
  // A signal asks for the agent's end. A supervisor in the same job gets it, too, and ends the tasks in their order:
  // while it is attached, it is only told of the first signal. The tasks get such a signal, too (ExitsAtSignal).
  void OnSignal();

  // Everything has ended and the socket is removed, with the folder if the supervisor wanted the end. Or the keeper has
  // died, and the tasks with it: the agent must end, so that another begins anew.
  bool done() const { return done_; }
  bool lost_keeper() const { return lost_keeper_; }
  // Returns whether it ends because no supervisor has answered, or by EndNow.
  bool ending() const { return link_.ending(); }
  // Returns how long it goes on without a supervisor: without any, or without one more.
  absl::Duration patience() const { return link_.supervisor() > 0 ? options_.limits.grace : FirstPatience(); }

 private:
  struct Stream {
    Socket socket;
    std::optional<SupervisorLink::StreamId> id;  // once its handshake has passed
    std::string key = "";                        // over TCP, of its MACs
    absl::Time heard = absl::InfinitePast();     // likewise: when something has come last
    bool was_attached = false;
    bool ended = false;
    std::unique_ptr<AgentConnection> connection;  // destroyed first
  };
  // That many haven't attached, at most; an older one makes room.
  static constexpr size_t kWaiting = 8;

  AgentServer(AgentServerOptions options, const Place& place, std::unique_ptr<Keeper> keeper, FdLoop& loop);
  [[nodiscard]] absl::Status Start();
  AgentRecord Record() const;
  absl::Duration FirstPatience() const { return std::max(options_.limits.first, options_.limits.grace); }
  EarlierLives Earlier();
  // The supervisor has been heard.
  void RenewLimit(absl::Time answered);
  // Tells the keeper once that the tasks have been asked to end.
  void TellEnding();
  void OnKeeperGone();
  std::unique_ptr<Backend> MakeBackend(BackendEvents& events);
  void Accept();
  // `key`: of a stream over TCP.
  void Add(Socket socket, const std::string& key);
  void MakeRoom();
  std::list<Stream>::iterator Erase(std::list<Stream>::iterator stream);
  bool IsAttached(const Stream& stream) const { return stream.id && stream.id == link_.attached(); }
  StreamOwner OwnerOf(Stream& stream);
  // Nothing comes over it any more, though a living supervisor sends something all the time.
  bool IsSilent(const Stream& stream) const;
  void SendUsage();
  // Writes what there is and closes the streams that are of no use any more.
  void CareForStreams();
  void Finish();

  // Constant after construction.
  const AgentServerOptions options_;
  const Place& place_;
  FdLoop& loop_;

  std::unique_ptr<Keeper> keeper_;
  KeptJournal journal_;
  BackendExecutor executor_;
  SupervisorLink link_;
  UsageReport usage_report_;
  std::optional<CounterFile> heard_;  // once started
  bool listens_ = false;
  bool told_ending_ = false;
  bool lost_keeper_ = false;
  bool was_signalled_ = false;
  std::list<Stream> streams_;
  std::optional<SupervisorDialer> dialer_;
  absl::Time accept_again_ = absl::InfiniteFuture();  // this process had no descriptor left
  absl::Time next_usage_ = absl::InfinitePast();
  absl::Time looked_ = absl::InfinitePast();  // OnTime's last call
  bool done_ = false;
};

}  // namespace muster
