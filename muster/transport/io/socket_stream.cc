#include "muster/transport/io/socket_stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <utility>

namespace muster {

SocketStream::SocketStream(Poller& poller, Socket socket) : poller_(poller), socket_(std::move(socket)) {
  const int on = 1;  // errors are ignored: a broken socket shows at the first read
  setsockopt(socket_.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(socket_.fd(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

SocketStream::~SocketStream() { Stop(); }

void SocketStream::Stop() {
  if (watch_) poller_.Remove(*watch_);
  watch_.reset();
}

void SocketStream::Start(Poller::Interest interest, Poller::Watched* user) {
  watch_ = poller_.Add(socket_.fd(), interest, user);
}

void SocketStream::SetInterest(Poller::Interest interest) { poller_.Change(*watch_, interest); }

ssize_t SocketStream::Send(const iovec* vectors, size_t count, bool more_follows) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(vectors);
  message.msg_iovlen = count;
  return sendmsg(socket_.fd(), &message, MSG_NOSIGNAL | (more_follows ? MSG_MORE : 0));
}

// One vector is the usual case, and recv is cheaper.
ssize_t SocketStream::Receive(const iovec* vectors, size_t count) {
  if (count == 1) return recv(socket_.fd(), vectors[0].iov_base, vectors[0].iov_len, 0);
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(vectors);
  message.msg_iovlen = count;
  return recvmsg(socket_.fd(), &message, 0);
}

}  // namespace muster
