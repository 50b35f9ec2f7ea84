// Where agents come from. An engine starts an agent on a host that the run has, and gives the stream to it: the user's
// own ssh, a batch system, later a cluster's API. It supervises nothing, restarts nothing and reads no log. Used by
// the thread that runs the FdLoop with which it watches its descriptors.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace muster {

// A stream to an agent whose handshake hasn't begun.
struct AgentStream {
  int in_fd = -1;   // non-blocking, like out_fd
  int out_fd = -1;  // may be in_fd
  std::string read_already;
  // The key of the host's streams over TCP (KeyOfHost), with which frames have MACs. Empty: other means have made sure
  // who is at the other end (TokenOfLocalStream).
  std::string key = "";
  // Where the host is, in digits, as the agent's connection shows it; "" where that isn't known here.
  std::string address = "";
  // Keeps the descriptors open, and whatever carries the stream alive.
  std::shared_ptr<void> carrier;
  // Returns what the carrier said last, in parentheses, for the line that says why the stream has ended; "" if nothing.
  std::function<std::string()> last_words = [] { return std::string(); };
};

class EngineEvents {
 public:
  virtual ~EngineEvents() = default;
  // Exactly one of these two answers each Connect, from the loop or from OnTime.
  virtual void OnStream(const std::string& host, AgentStream stream) = 0;
  // `why` is a sentence that says what to do; it begins with the host, unless it is the same for all.
  // FailedPrecondition: nothing of the run is there any more, and nothing will be. Aborted: this host won't come back,
  // others may be there. Otherwise it may come back.
  virtual void OnNoStream(const std::string& host, const absl::Status& why) = 0;
};

class Engine {
 public:
  virtual ~Engine() = default;
  // Must be called before Connect. Borrows `events`, which must outlive the engine.
  [[nodiscard]] virtual absl::Status Start(EngineEvents& events) = 0;
  // Gets a stream to the host's agent, which is started if the host has none; again after the stream has ended. Call it
  // once at a time for each host.
  virtual void Connect(const std::string& host) = 0;
  // Returns what was heard last of a host whose Connect isn't answered yet, or what is done with it; "" for nothing.
  virtual std::string LastWords(const std::string& /*host*/) const { return ""; }
  // When OnTime has something to do; InfiniteFuture if never.
  virtual absl::Time deadline() const = 0;
  // Must be called at deadline(); may be called at any time.
  virtual void OnTime() = 0;
};

}  // namespace muster
