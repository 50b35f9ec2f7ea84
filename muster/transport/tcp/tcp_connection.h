// One TCP connection, of a client or a server: the handshake, then frames both ways. Sends gather header, control and
// bulk in one system call; bulk is received straight into the memory that the owner names. Everything is tried at once
// and waits in epoll only when the kernel says so. Lives on its loop; not thread-safe. Internal to tcp/.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/bytes.h"
#include "muster/transport/frame.h"
#include "muster/transport/handshake.h"
#include "muster/transport/tcp/outgoing_queue.h"
#include "muster/transport/tcp/poller.h"
#include "muster/transport/tcp/progress.h"
#include "muster/transport/tcp/socket.h"
#include "muster/transport/tcp/tcp_event_loop.h"
#include "muster/transport/tcp/tcp_options.h"

namespace muster {

class TcpConnection final : public std::enable_shared_from_this<TcpConnection>, private Poller::Watched {
 public:
  enum class Fault { kLost, kMalformed, kStalled, kHandshake };

  // Called on the loop. Any of these may call Close.
  class Owner {
   public:
    virtual ~Owner() = default;
    // The handshake has been passed.
    virtual void OnReady() = 0;
    // Header and control of a frame have arrived. Where its bulk goes (valid until the frame's end, at least as long as
    // its bulk), or null to throw it away. An error closes the connection as kMalformed.
    virtual absl::StatusOr<const MutableSegments*> OnFrame(const FrameHeader& header, std::string control) = 0;
    // The last byte of that frame has arrived.
    virtual void OnFrameEnd() = 0;
    // Some frames have been handed to the kernel.
    virtual void OnSent() {}
    // The connection has ended by itself. Never from inside a call of the owner's; not after Close. A frame that was
    // begun won't end.
    virtual void OnClosed(const absl::Status& why, Fault fault) = 0;
  };

  // `owner` must outlive the connection or call Close. `loop` must outlive it.
  TcpConnection(TcpEventLoop& loop, Socket socket, const TcpOptions& options, std::unique_ptr<Handshake> handshake,
                Owner* owner);

  void Start();
  // Ends it at once and silently. The owner isn't called any more, memory lent to it is free.
  void Close();

  // Queues a frame and sends what can be sent. Before OnReady only the handshake may use it.
  void Send(OutgoingFrame frame);

  // A frame that waits to be sent, or is being sent.
  const OutgoingQueue& outgoing() const { return outgoing_; }
  // Takes back a frame of which nothing has been sent. False if there is none with that id, or it has been begun.
  bool Withdraw(uint64_t id) { return outgoing_.Withdraw(id); }
  // The frames of which nothing has been sent; for OnClosed.
  std::vector<OutgoingFrame> TakeUnsent() { return outgoing_.TakeUnsent(); }
  // The rest of the frame being received is thrown away; the memory named for it is free.
  void DiscardBulk() { bulk_ = nullptr; }
  // Ends it with `why` as though it had been lost; the owner gets OnClosed later.
  void Fail(absl::Status why, Fault fault = Fault::kLost);

  // While paused nothing is received, and the peer's sends come to a halt.
  void SetPaused(bool paused);

  bool ready() const { return handshake_ == nullptr; }
  uint64_t bytes_received() const { return bytes_received_; }
  uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  enum class Part { kHandshake, kHeader, kControl, kBulk };

  void OnReady(bool readable, bool writable, bool broken) override;

  void Read();
  bool Parse();
  bool ParseHandshake();
  bool ParseHeader();
  bool ParseControl();
  bool ParseBulk();
  void EndFrame();
  ssize_t Receive(size_t* wanted);
  size_t GatherBulk(iovec* vectors, size_t most, size_t* wanted);
  void AdvanceBulk(size_t bytes);
  size_t TakeStaged(std::byte* to, size_t most);

  void Flush();
  void SetWriteWaiting(bool waiting);

  bool open() const { return owner_ != nullptr && !failed_; }
  bool MidFrame() const { return part_ == Part::kControl || part_ == Part::kBulk || staged_begin_ != staged_end_; }
  void CloseSocket();
  void Expect(Progress& progress, uint64_t bytes);
  void OnProgressTimer();

  TcpEventLoop& loop_;
  const TcpOptions& options_;
  Owner* owner_;         // null once closed
  bool failed_ = false;  // closed by itself; the owner is about to be told
  Socket socket_;
  std::optional<Poller::Id> watch_;

  std::unique_ptr<Handshake> handshake_;  // null once passed
  EventLoop::TimerId handshake_timer_{};

  // Receiving. What comes in one piece with a header is staged, at most 4 KiB, so that a small message costs one system
  // call and a large one little copying.
  static constexpr size_t kStagingBytes = 4096;
  Part part_ = Part::kHandshake;
  std::array<std::byte, kStagingBytes> staging_;
  size_t staged_begin_ = 0;
  size_t staged_end_ = 0;
  FrameHeader header_;
  std::string control_;
  size_t control_filled_ = 0;
  const MutableSegments* bulk_ = nullptr;  // the owner's; null: thrown away
  size_t bulk_segment_ = 0;                // where the next byte goes
  size_t bulk_offset_ = 0;
  uint64_t bulk_left_ = 0;
  std::vector<std::byte> scratch_;  // for bytes that are thrown away, while there are any
  bool paused_ = false;
  bool reading_ = false;
  uint64_t bytes_received_ = 0;
  Progress receiving_;

  OutgoingQueue outgoing_;
  bool write_waiting_ = false;
  bool flushing_ = false;
  std::vector<OutgoingFrame> done_;  // empty between sends; kept for its memory
  uint64_t bytes_sent_ = 0;
  Progress sending_;

  bool progress_timer_set_ = false;
  EventLoop::TimerId progress_timer_{};
};

}  // namespace muster
