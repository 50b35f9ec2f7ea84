// Makes connections, one attempt at a time: resolves the address's name and tries its endpoints in order, all within
// one time limit. Lives on its loop; not thread-safe. Internal to tcp/.
#pragma once

#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/transport/io/socket.h"
#include "muster/transport/io/tcp_event_loop.h"
#include "muster/transport/tcp/tcp_options.h"

namespace muster {

class TcpDialer {
 public:
  // Receives a socket that doesn't block. Unavailable gives the operating system's reason; InvalidArgument: not an
  // address.
  using Callback = absl::AnyInvocable<void(absl::StatusOr<Socket>)>;

  TcpDialer(TcpEventLoop& loop, absl::Duration timeout, NameLookup lookup);
  ~TcpDialer();  // gives up an attempt without calling its callback

  // Calls `done` from the loop, never from inside Dial. One attempt at a time.
  void Dial(const std::string& address, Callback done);

 private:
  class Attempt;

  TcpEventLoop& loop_;
  const absl::Duration timeout_;
  const NameLookup lookup_;
  std::shared_ptr<Attempt> attempt_;
};

}  // namespace muster
