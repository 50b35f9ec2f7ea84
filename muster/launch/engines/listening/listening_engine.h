// An engine whose agents connect to this process over TCP: listens for them, knows which have come, and has an
// AgentStarter start those that are missing. For hosts that reach the supervisor, which is among them. Used by the
// loop's thread.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/net/port_range.h"
#include "muster/launch/agent/agent_listener.h"
#include "muster/launch/agent/rendezvous.h"
#include "muster/launch/engines/engine.h"
#include "muster/launch/engines/listening/agent_starter.h"
#include "muster/launch/system/fd_loop.h"

namespace muster {

struct ListeningEngineOptions {
  std::vector<std::string> hosts;    // all of the run
  std::vector<std::string> towards;  // their addresses, by which this host finds its own; empty: their names
  std::string rendezvous_file;       // is written at the start and removed at the end
  bool rendezvous_is_given = false;  // it is there, with the addresses under which hosts find this one, and stays
  std::optional<PortRange> ports = std::nullopt;  // of which this host listens on one; nullopt: on any
  bool goes_on = false;                           // the agents are there: those of the supervisor before
  // An agent starts within this: prologues of a site may take their time.
  absl::Duration start_patience = absl::Minutes(2);
  std::function<void(const std::string& line)> note = [](const std::string&) {};  // takes a line for the user
};

class ListeningEngine : public Engine, private AgentStarterEvents {
 public:
  // Borrows `loop` and `clock`, which must outlive it.
  ListeningEngine(ListeningEngineOptions options, std::unique_ptr<AgentStarter> starter, FdLoop& loop,
                  const Clock& clock);
  // Ends the agents, as ~AgentStarter.
  ~ListeningEngine() override;

  // The errors of writing the file, and of the starter.
  absl::Status Start(EngineEvents& events) override;
  void Connect(const std::string& host) override;
  std::string LastWords(const std::string& host) const override { return nodes_.at(host).said; }
  absl::Time deadline() const override;
  void OnTime() override;

 private:
  // One that has been heard comes again within this, if it can.
  static constexpr absl::Duration kReturnPatience = absl::Seconds(5);
  // The agents of a supervisor that was killed have found the next one within this.
  static constexpr absl::Duration kFindPatience = absl::Seconds(8);
  // What an agent said last comes at most so much after its end.
  static constexpr absl::Duration kLastWords = absl::Seconds(1);

  struct Node {
    bool started = false;  // a start may still bring an agent
    bool came = false;     // its agent has connected
    bool wanted = false;
    absl::Time found_by = absl::InfinitePast();    // without a start: an agent that is there already
    absl::Time ended_at = absl::InfiniteFuture();  // its agent
    absl::Time patience_ends = absl::InfiniteFuture();
    std::string said;
  };

  void OnSaid(const std::string& host, const std::string& line) override;
  void OnSaidOfAll(const std::vector<std::string>& hosts, const std::string& line) override;
  void OnWaits(const std::vector<std::string>& hosts, const std::string& line) override;
  void OnEnded(const std::string& host, const std::string& how) override;

  void NoteStart(const std::vector<std::string>& hosts);
  void OnArrival(const std::string& host, Socket socket, const std::string& rest);
  // When something must be done for a node that is wanted.
  static absl::Time DueOf(const Node& node);
  void Care(const std::string& host, Node& node);
  void StartAgain(const std::string& host, Node& node);
  void Fail(const std::string& host, Node& node, const absl::Status& why);

  const ListeningEngineOptions options_;
  FdLoop& loop_;
  const Clock& clock_;

  std::unique_ptr<AgentStarter> starter_;
  EngineEvents* events_ = nullptr;  // from Start on
  Rendezvous rendezvous_;
  std::unique_ptr<AgentListener> listener_;
  std::map<std::string, Node> nodes_;
  std::deque<std::string> asked_;  // since the last OnTime
};

}  // namespace muster
