// Connects an agent to its supervisor over TCP (rendezvous.h), again each time that the connection has ended: the
// rendezvous is read anew, as a next supervisor may be elsewhere, and a name in it is looked up anew. One that isn't
// known is a supervisor that isn't there yet. Used by the loop's thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/retry_pause.h"
#include "muster/launch/agent_server/name_lookup.h"
#include "muster/launch/system/fd_loop.h"
#include "muster/transport/io/socket.h"
#include "muster/transport/io/tcp_address.h"

namespace muster {

struct SupervisorDialerOptions {
  std::string rendezvous;  // the file
  std::string host;        // this one's name in the run
  // A connection whose greeting has gone, non-blocking, and the host's key.
  std::function<void(Socket socket, const std::string& key)> connected;
  // Takes a line about why there is none, each time that the reason changes for an address.
  std::function<void(const std::string& line)> log;
  // Prints the addresses of the name behind it, as NameLookup has it: this program itself.
  std::vector<std::string> lookup = {"/proc/self/exe", "agent", "--lookup"};
};

class SupervisorDialer {
 public:
  // Borrows `loop` and `clock`, which must outlive it. Dials at the next OnTime.
  SupervisorDialer(SupervisorDialerOptions options, FdLoop& loop, const Clock& clock);
  ~SupervisorDialer();
  SupervisorDialer(const SupervisorDialer&) = delete;
  SupervisorDialer& operator=(const SupervisorDialer&) = delete;

  // The connection has ended. `was_of_use`: a supervisor has attached over it.
  void DialAgain(bool was_of_use);
  absl::Time deadline() const;
  void OnTime();

 private:
  static constexpr absl::Duration kPatience = absl::Seconds(5);         // for each address
  static constexpr absl::Duration kLookupPatience = absl::Seconds(40);  // for a name: resolvers try for long

  void Begin();
  void TryNext();
  // Connects to an address in digits.
  void Dial(const std::string& text);
  void LookUp(const std::string& host, const std::string& port);
  void OnWritable();
  void Failed(const std::string& why);
  // Many agents whose supervisor has gone don't dial it all at once.
  absl::Duration Pause();

  // Constant after construction.
  const SupervisorDialerOptions options_;
  FdLoop& loop_;
  const Clock& clock_;

  RetryPause pause_;
  absl::Time dial_at_;                  // InfiniteFuture: there is a connection, or one is being made
  std::vector<std::string> addresses_;  // not tried yet
  std::string key_;
  std::string address_;  // that of dialing_
  Socket dialing_;
  size_t lookups_ = 0;
  std::unique_ptr<NameLookup> lookup_;  // of the name in address_
  absl::Time give_up_at_ = absl::InfiniteFuture();
  std::map<std::string, std::string> told_;  // by address
};

}  // namespace muster
