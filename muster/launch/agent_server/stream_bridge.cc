#include "muster/launch/agent_server/stream_bridge.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "muster/base/os/uninterrupted.h"

namespace muster {
namespace {

// Returns the flags that the descriptor had.
int MakeNonBlocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  return flags;
}

}  // namespace

StreamBridge::StreamBridge(FdLoop& loop, int in, int out, int socket)
    : loop_(loop),
      up_{.from = in, .to = socket},
      down_{.from = socket, .to = out},
      in_flags_(MakeNonBlocking(in)),
      out_flags_(MakeNonBlocking(out)) {
  MakeNonBlocking(socket);
  const auto ready = [this](short) { OnReady(); };
  loop_.Watch(socket, POLLIN, ready);
  loop_.Watch(in, POLLIN, ready);
  if (out != in) loop_.Watch(out, 0, ready);
}

StreamBridge::~StreamBridge() {
  loop_.Forget(up_.to);
  loop_.Forget(up_.from);
  if (down_.to != up_.from) loop_.Forget(down_.to);
  fcntl(down_.to, F_SETFL, out_flags_);
  fcntl(up_.from, F_SETFL, in_flags_);
}

void StreamBridge::OnReady() {
  if (done_) return;
  done_ = !Move(up_) || !Move(down_);
  const short reads_in = up_.empty() ? POLLIN : 0;
  const short writes_out = down_.empty() ? 0 : POLLOUT;
  const auto socket = static_cast<short>((down_.empty() ? POLLIN : 0) | (up_.empty() ? 0 : POLLOUT));
  if (done_) return Watch(0, 0, 0);
  Watch(reads_in, writes_out, socket);
}

void StreamBridge::Watch(short in, short out, short socket) {
  loop_.SetEvents(up_.to, socket);
  const bool is_one = down_.to == up_.from;
  loop_.SetEvents(up_.from, static_cast<short>(is_one ? in | out : in));
  if (!is_one) loop_.SetEvents(down_.to, out);
}

bool StreamBridge::Move(Flow& flow) {
  if (flow.empty()) {
    const ssize_t got = Uninterrupted([&] { return read(flow.from, flow.bytes.data(), flow.bytes.size()); });
    if (got <= 0) return got < 0 && errno == EAGAIN;
    flow.begin = 0;
    flow.end = static_cast<size_t>(got);
  }
  const ssize_t put =
      Uninterrupted([&] { return write(flow.to, flow.bytes.data() + flow.begin, flow.end - flow.begin); });
  if (put < 0) return errno == EAGAIN;
  flow.begin += static_cast<size_t>(put);
  return true;
}

}  // namespace muster
