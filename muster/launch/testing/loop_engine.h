// An engine whose agents are in this process and in its loop: the real AgentServer with its tasks, without a process of
// its own, over its Unix socket or over TCP. Used by the loop's thread. Test-only.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/check.h"
#include "muster/base/status_macros.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/agent/agent_listener.h"
#include "muster/launch/agent/rendezvous.h"
#include "muster/launch/agent_server/agent_server.h"
#include "muster/launch/engines/engine.h"
#include "muster/launch/system/fd_loop.h"

namespace muster {

// An agent with its place. It has no next life.
struct LoopAgent {
  static std::unique_ptr<LoopAgent> Start(const AgentServerOptions& options, AgentFolder folder, FdLoop& loop) {
    auto place = AgentServer::Open(std::move(folder));
    MUSTER_CHECK(place.ok());
    auto agent = std::make_unique<LoopAgent>(LoopAgent{.place = *std::move(place), .server = nullptr});
    auto keeper = AgentServer::ForkKeeper(options.job, agent->place, [](std::unique_ptr<Keeper>) { return 1; });
    MUSTER_CHECK(keeper.ok());
    auto server = AgentServer::Start(options, agent->place, *std::move(keeper), loop);
    MUSTER_CHECK(server.ok());
    agent->server = *std::move(server);
    return agent;
  }

  AgentServer::Place place;
  std::unique_ptr<AgentServer> server;
};

class LoopEngine final : public Engine {
 public:
  LoopEngine(std::string job, BackendOptions backend, AgentLimits limits, FdLoop& loop, bool over_tcp = false)
      : job_(std::move(job)), backend_(std::move(backend)), limits_(limits), loop_(loop), over_tcp_(over_tcp) {}

  // Hosts that don't exist.
  std::map<std::string, std::string> unreachable;
  // So many of the next streams lead to nobody.
  int silent = 0;
  const Clock* agents_clock = &RealClock();  // borrowed
  // The supervisor takes this for the run's secret; empty: it knows it.
  std::string other_secret;
  // Further names of hosts.
  std::map<std::string, std::string> aliases;

  absl::Status Start(EngineEvents& events) override {
    events_ = &events;
    if (!over_tcp_) return absl::OkStatus();
    std::set<std::string> hosts;
    for (const Host& host : backend_.plan.hosts) hosts.insert(host.name);
    rendezvous_ = NewRendezvous({});
    ASSIGN_OR_RETURN(listener_,
                     AgentListener::Listen(hosts, rendezvous_.secret, loop_, RealClock(),
                                           [this](const std::string& host, Socket socket, const std::string& rest) {
                                             Arrived(host, std::move(socket), rest);
                                           }));
    rendezvous_.addresses = {absl::StrCat("127.0.0.1:", listener_->port())};
    return WriteRendezvous(File(), rendezvous_);
  }
  void Connect(const std::string& host) override { wanted_.push_back(host); }
  std::string LastWords(const std::string& host) const override { return absl::StrCat(host, " is busy"); }
  absl::Time deadline() const override {
    absl::Time first = wanted_.empty() ? absl::InfiniteFuture() : absl::InfinitePast();
    for (const auto& [host, agent] : agents_) first = std::min(first, agent->server->deadline());
    return first;
  }
  void OnTime() override {
    if (listener_ != nullptr) listener_->OnTime();
    for (const auto& [host, agent] : agents_) agent->server->OnTime();
    std::erase_if(agents_, [](const auto& one) { return one.second->server->done(); });
    for (const std::string& host : std::exchange(wanted_, {})) {
      if (silent > 0) {
        --silent;
        GiveSilentStream(host);
      } else if (unreachable.contains(host)) {
        events_->OnNoStream(host, absl::UnavailableError(unreachable[host]));
      } else {
        GiveStream(host, aliases.contains(host) ? aliases[host] : host);
      }
    }
  }

  // The agent on the host dies with its tasks.
  void KillAgent(const std::string& host) { agents_.erase(host); }
  // Ends the newest stream to the host.
  void Cut(const std::string& host) { shutdown(sockets_.at(host)->fd(), SHUT_RDWR); }
  // The agent on the host ends its tasks, as without a supervisor for the grace.
  void EndAgent(const std::string& host) { agents_.at(host)->server->EndNow(); }
  size_t agents() const { return agents_.size(); }

 private:
  AgentFolder FolderOf(const std::string& host) {
    auto folder = AgentFolder::Open(job_ + "-" + host, folder_.path());
    MUSTER_CHECK(folder.ok());
    return *std::move(folder);
  }
  void GiveSilentStream(const std::string& name) {
    int ends[2];
    MUSTER_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    const auto pair = std::make_shared<std::pair<Socket, Socket>>(Socket(ends[0]), Socket(ends[1]));
    events_->OnStream(name, {.in_fd = ends[0], .out_fd = ends[0], .read_already = "", .carrier = pair});
  }
  void GiveStream(const std::string& name, const std::string& host) {
    if (!agents_.contains(host)) {
      AgentFolder folder = FolderOf(host);
      MUSTER_CHECK(folder.Lock(absl::Seconds(60)).ok());
      agents_[host] = LoopAgent::Start({.job = job_,
                                        .limits = limits_,
                                        .address = "127.0.0.1",
                                        .rendezvous = over_tcp_ ? File() : "",
                                        .host = host,
                                        .backend = backend_,
                                        .clock = agents_clock},
                                       std::move(folder), loop_);
    }
    if (over_tcp_) return listener_->Want(host);
    auto connected = FolderOf(host).Connect();
    MUSTER_CHECK(connected.ok());
    fcntl(connected->fd(), F_SETFL, O_NONBLOCK);
    const auto socket = std::make_shared<Socket>(*std::move(connected));
    sockets_[host] = socket;
    events_->OnStream(name, {.in_fd = socket->fd(), .out_fd = socket->fd(), .read_already = "", .carrier = socket});
  }

  std::string File() const { return folder_.path() + "/rendezvous"; }
  void Arrived(const std::string& host, Socket arrived, const std::string& rest) {
    const auto socket = std::make_shared<Socket>(std::move(arrived));
    sockets_[host] = socket;
    events_->OnStream(host, {.in_fd = socket->fd(),
                             .out_fd = socket->fd(),
                             .read_already = rest,
                             .key = KeyOfHost(other_secret.empty() ? rendezvous_.secret : other_secret, host),
                             .carrier = socket});
  }

  const std::string job_;
  const BackendOptions backend_;
  const AgentLimits limits_;
  FdLoop& loop_;
  const bool over_tcp_;
  const ScratchFolder folder_;
  std::unique_ptr<AgentListener> listener_;
  Rendezvous rendezvous_;
  EngineEvents* events_ = nullptr;
  std::deque<std::string> wanted_;
  std::map<std::string, std::unique_ptr<LoopAgent>> agents_;
  std::map<std::string, std::shared_ptr<Socket>> sockets_;
};

}  // namespace muster
