// What the two ends of a loopback connection share. They may live on different loops in different threads: each reaches
// the other only through its mailbox, and a call's memory only under that call's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "muster/base/bytes.h"
#include "muster/base/mutex.h"
#include "muster/transport/event_loop.h"
#include "muster/transport/handshake.h"
#include "muster/transport/listener.h"

namespace muster {

class LoopbackChannel;
class LoopbackListener;

// Posts to the loop of an end as long as that end exists. Thread-safe.
class LoopbackMailbox {
 public:
  explicit LoopbackMailbox(EventLoop& loop) : loop_(loop) {}

  // Does nothing once closed. `handler` must check whether its end still exists when it runs.
  void Post(EventLoop::Handler handler) {
    MutexLock lock(mutex_);
    if (!closed_) loop_.Post(std::move(handler));
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

struct LoopbackServer {
  LoopbackServer(EventLoop& loop, HandshakeIdentity identity, LoopbackListener& listener)
      : identity(std::move(identity)), mailbox(loop), listener(&listener) {}

  const HandshakeIdentity identity;
  LoopbackMailbox mailbox;
  LoopbackListener* listener;  // used on the listener's loop only; null once it is gone
};

struct LoopbackClient {
  LoopbackClient(EventLoop& loop, LoopbackChannel& channel) : mailbox(loop), channel(&channel) {}

  LoopbackMailbox mailbox;
  LoopbackChannel* channel;  // used on the channel's loop only; null once it is gone
};

// One connection. Its address identifies it for both ends.
struct LoopbackLink {
  std::shared_ptr<LoopbackServer> server;
  std::shared_ptr<LoopbackClient> client;
};

// The memory of one call: the serving thread copies out of it and into it under the lock, and only while it is live.
struct LoopbackMemory {
  Mutex mutex;
  bool live ABSL_GUARDED_BY(mutex) = true;
  Segments bulk ABSL_GUARDED_BY(mutex);
  MutableSegments into ABSL_GUARDED_BY(mutex);
};

// A request on its way to the server.
struct LoopbackMessage {
  uint64_t id = 0;
  uint16_t method = 0;
  std::string control;
  size_t bulk_bytes = 0;
  absl::Duration time_left;
  std::optional<size_t> cut_after;
  std::shared_ptr<LoopbackMemory> memory;
};

// Copies min(total of `from`, total of `to`, `limit`) bytes; returns how many.
size_t CopySegments(absl::Span<const ByteSpan> from, const MutableSegments& to, size_t limit);

}  // namespace muster
