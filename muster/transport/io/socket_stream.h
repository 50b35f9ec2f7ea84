// A ByteStream over a TCP socket. Internal to tcp/.
#pragma once

#include <optional>

#include "muster/transport/io/byte_stream.h"
#include "muster/transport/io/poller.h"
#include "muster/transport/io/socket.h"

namespace muster {

class SocketStream final : public ByteStream {
 public:
  // `poller` must outlive it.
  SocketStream(Poller& poller, Socket socket);
  ~SocketStream() override;

  void Start(Poller::Interest interest, Poller::Watched* user) override;
  void SetInterest(Poller::Interest interest) override;
  void Stop() override;
  ssize_t Send(const iovec* vectors, size_t count, bool more_follows) override;
  ssize_t Receive(const iovec* vectors, size_t count) override;

 private:
  Poller& poller_;
  Socket socket_;
  std::optional<Poller::Id> watch_;
};

}  // namespace muster
