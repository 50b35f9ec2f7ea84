// What the two ends of a loopback connection share. They may live on different loops in different threads: each reaches
// the other only through its mailbox, and a call's memory only under that call's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/bytes.h"
#include "muster/base/mutex.h"
#include "muster/transport/channel.h"
#include "muster/transport/event_loop.h"
#include "muster/transport/handshake.h"
#include "muster/transport/listener.h"

namespace muster {

class LoopbackChannel;
class LoopbackListener;

// Posts to the loop of an end as long as that end exists. Thread-safe, but for CallAt.
class LoopbackMailbox {
 public:
  explicit LoopbackMailbox(EventLoop& loop) : loop_(loop) {}

  // Does nothing once closed. `handler` must check whether its end still exists when it runs.
  void Post(EventLoop::Handler handler) {
    MutexLock lock(mutex_);
    if (!closed_) loop_.Post(std::move(handler));
  }
  // Likewise at `when`, on the thread that drives the loop.
  void CallAt(absl::Time when, EventLoop::Handler handler) {
    MutexLock lock(mutex_);
    if (!closed_) loop_.CallAt(when, std::move(handler));
  }
  void Close() {
    MutexLock lock(mutex_);
    closed_ = true;
  }

 private:
  EventLoop& loop_;
  Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

// What a network knows of the process at an end; one that tells processes apart has its own kind.
struct LoopbackHost {
  virtual ~LoopbackHost() = default;
};

// The process at an end.
struct LoopbackParty {
  HandshakeIdentity identity;
  std::shared_ptr<LoopbackHost> host;  // null: the network knows nothing of it
};

template <typename End>
struct LoopbackEnd {
  LoopbackEnd(EventLoop& loop, LoopbackParty party, End& end) : party(std::move(party)), mailbox(loop), end(&end) {}

  const LoopbackParty party;
  LoopbackMailbox mailbox;
  End* end;  // touched on its loop only; null once it is gone
};
using LoopbackServer = LoopbackEnd<LoopbackListener>;
using LoopbackClient = LoopbackEnd<LoopbackChannel>;

// One connection. Its address is its identity for both ends.
struct LoopbackLink {
  virtual ~LoopbackLink() = default;

  std::shared_ptr<LoopbackServer> server;  // null until the network has found it
  std::shared_ptr<LoopbackClient> client;
  // False once that end has seen the connection break; touched on its loop only.
  bool server_open = true;
  bool client_open = true;
};

// A request on its way, and the memory of its call: the serving thread copies out of and into it under the lock, and
// only while the call is live.
struct LoopbackMessage {
  uint64_t id = 0;
  IncomingRequest request;  // without the connection and the deadline
  absl::Duration time_left;
  std::optional<std::vector<std::byte>> taken;  // the bulk, if the network has copied it

  Mutex mutex;
  bool live ABSL_GUARDED_BY(mutex) = true;
  Segments bulk ABSL_GUARDED_BY(mutex);
  MutableSegments into ABSL_GUARDED_BY(mutex);

  // The caller has its memory back.
  void End() {
    MutexLock lock(mutex);
    live = false;
  }
  // Copies the first `bytes` of the bulk; false: the caller has taken it back.
  bool CopyBulk(const MutableSegments& to, size_t bytes);
  // What the caller gets of an answer, whose bulk is copied to it; nullopt: it doesn't wait any more. DataLoss: the
  // bulk is longer than `into`.
  std::optional<absl::StatusOr<Reply>> Take(absl::Status status, absl::string_view control,
                                            absl::Span<const ByteSpan> answer);
};

}  // namespace muster
