// An agent on its host: listens on a Unix socket, speaks the protocol with the supervisor that attaches there
// (docs/agents.md), and runs the tasks as children of this process. What it knows dies with the process, and so do the
// tasks. Works in the FdLoop of its owner, which calls OnTime after each round. Used by the loop's thread; the process
// must have no others, since LocalBackend forks.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/launch/agent/agent_connection.h"
#include "muster/launch/agent/agent_limits.h"
#include "muster/launch/agent/command_executor.h"
#include "muster/launch/agent/supervisor_link.h"
#include "muster/launch/agent_server/agent_folder.h"
#include "muster/launch/agent_server/backend_executor.h"
#include "muster/launch/backends/backend.h"
#include "muster/launch/system/fd_loop.h"
#include "muster/transport/io/socket.h"

namespace muster {

struct AgentServerOptions {
  std::string job;
  AgentLimits limits;
  std::string address;                // of this host, see BackendExecutorOptions
  std::string muster = "";            // likewise
  BackendOptions backend;             // the server sets run_id, note, address, kept_lock_fd and clock
  const Clock* clock = &BootClock();  // borrowed
  // Called when the supervisor has wanted the end and everything has ended, before the job's folder goes. Empty: no
  // call.
  std::function<void()> job_ended;
};

class AgentServer {
 public:
  // `folder` must be locked. Borrows `loop`, which must outlive it.
  static absl::StatusOr<std::unique_ptr<AgentServer>> Start(AgentServerOptions options, AgentFolder folder,
                                                            FdLoop& loop);
  // Kills what is left of its tasks, and waits until they and the guard are gone.
  ~AgentServer();
  AgentServer(const AgentServer&) = delete;
  AgentServer& operator=(const AgentServer&) = delete;

  // Must be called after each round of the loop, which must wait no longer than until deadline().
  void OnTime();
  absl::Time deadline() const;
  // Ends as if no supervisor had answered for the grace: asks the tasks to end and kills them 3 s later.
  void EndNow() { link_.EndNow(options_.clock->Now()); }

  // Everything has ended and the socket is removed, with the folder if the supervisor wanted the end.
  bool done() const { return done_; }
  // Returns whether it ends because no supervisor has answered, or by EndNow.
  bool ending() const { return link_.ending(); }

 private:
  // The agent's memory is that of the process: SupervisorLink has it already, and no other life of the agent follows.
  class NoJournal final : public AgentJournal {
    void SetSupervisor(uint64_t, const std::string&) override {}
    void TakeIn(const OpenCommand&) override {}
    void Close(const CommandId&) override {}
    void SetAnswered(absl::Time) override {}
  };
  struct Stream {
    Socket socket;
    std::optional<SupervisorLink::StreamId> id;  // once its handshake has passed
    bool ended = false;
    std::unique_ptr<AgentConnection> connection;  // destroyed first
  };
  // That many haven't attached, at most; an older one makes room.
  static constexpr size_t kWaiting = 8;

  AgentServer(AgentServerOptions options, AgentFolder folder, FdLoop& loop);
  [[nodiscard]] absl::Status Start();
  AgentRecord NewRecord() const;
  std::unique_ptr<Backend> MakeBackend(BackendEvents& events);
  void Accept();
  void Add(Socket socket);
  void MakeRoom();
  bool IsAttached(const Stream& stream) const { return stream.id && stream.id == link_.attached(); }
  StreamOwner OwnerOf(Stream& stream);
  void SendUsage();
  // Writes what there is and closes the streams that are of no use any more.
  void CareForStreams();
  void Finish();

  // Constant after construction.
  const AgentServerOptions options_;
  const AgentFolder folder_;
  FdLoop& loop_;

  NoJournal journal_;
  BackendExecutor executor_;
  SupervisorLink link_;
  Socket listening_;
  std::list<Stream> streams_;
  absl::Time accept_again_ = absl::InfiniteFuture();  // this process had no descriptor left
  absl::Time next_usage_ = absl::InfinitePast();
  absl::Time looked_ = absl::InfinitePast();  // OnTime's last call
  bool done_ = false;
};

}  // namespace muster
