// One stream between a supervisor and an agent on descriptors: passes the handshake, then moves bytes of frames both
// ways in an FdLoop. What they mean is for its owner's AgentLink or SupervisorLink. SIGPIPE must be
// ignored. Used by the loop's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "muster/base/bytes.h"
#include "muster/launch/system/fd_loop.h"
#include "muster/launch/system/later_calls.h"
#include "muster/transport/handshake.h"

namespace muster {

// What moves frames over a connection. All are called from the loop, `next` also from AgentConnection::Write.
struct StreamOwner {
  // The handshake has passed; `hellos` as Handshake::hellos. Comes before all that follows.
  std::function<void(const std::string& hellos)> passed;
  // Takes in what has come. An error ends the connection.
  std::function<absl::Status(ByteSpan bytes)> take;
  // Returns the next frame, "" if there is none now. The stream has room for it.
  std::function<std::string()> next;
  // The stream has ended: OutOfRange if the other end has closed it, the handshake's or take's error, or the system's.
  // Called at most once, last; may destroy the connection. (Other calls must not.)
  std::function<void(const absl::Status& why)> ended;
};

// The token for the handshake of a stream whose ends know each other by other means, as the kernel's word for the user
// at the other end of a Unix socket, or an ssh login. It is no secret; it tells jobs apart.
std::string TokenOfLocalStream(const std::string& job);

class AgentConnection {
 public:
  // Reads from `in_fd` and writes to `out_fd`, which may be the same socket; both must be non-blocking, and stay the
  // caller's to close, once this is destroyed. `read_already`: what the caller has read from `in_fd`. Borrows `loop`.
  AgentConnection(FdLoop& loop, int in_fd, int out_fd, std::unique_ptr<Handshake> handshake, StreamOwner owner,
                  std::string read_already = "");
  ~AgentConnection();
  AgentConnection(const AgentConnection&) = delete;
  AgentConnection& operator=(const AgentConnection&) = delete;

  // Writes the frames that `next` gives, as far as the stream takes them; the rest goes from the loop. Call it whenever
  // there may be a frame: after a command or an event, and at a link's deadline.
  void Write();
  bool passed() const { return handshake_ == nullptr; }
  // Returns whether the stream has taken all that was written.
  bool written() const { return written_ == outgoing_.size(); }

 private:
  static constexpr size_t kWrittenAhead = 64 << 10;  // frames are made while less than this waits for the stream

  void OnReady(short found);
  void Read();
  void Take(ByteSpan bytes);
  [[nodiscard]] absl::Status Advance();
  void End(const absl::Status& why);
  void WatchForRoom(bool wanted);

  // Constant after construction.
  FdLoop& loop_;
  const int in_;
  const int out_;
  const StreamOwner owner_;

  LaterCalls later_;
  std::unique_ptr<Handshake> handshake_;  // until it has passed
  std::string received_;                  // of the handshake, unused
  std::string outgoing_;                  // not written yet
  size_t written_ = 0;                    // of outgoing_
  bool ended_ = false;
};

}  // namespace muster
