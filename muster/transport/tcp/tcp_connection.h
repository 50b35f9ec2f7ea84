// One connection of a client or a server: the handshake over TCP, then frames both ways, over TCP or through shared
// memory once it has moved. A send gathers header, control and bulk in one system call; bulk is received straight into
// the owner's memory. Every operation is tried at once and waits only when the stream says so. Lives on its loop; not
// thread-safe. Internal to tcp/.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/bytes.h"
#include "muster/transport/frame.h"
#include "muster/transport/handshake.h"
#include "muster/transport/io/byte_stream.h"
#include "muster/transport/io/poller.h"
#include "muster/transport/io/socket.h"
#include "muster/transport/io/tcp_event_loop.h"
#include "muster/transport/tcp/connection_owner.h"
#include "muster/transport/tcp/incoming_bulk.h"
#include "muster/transport/tcp/outgoing_queue.h"
#include "muster/transport/tcp/progress.h"
#include "muster/transport/tcp/tcp_options.h"

namespace muster {

class TcpConnection final : public std::enable_shared_from_this<TcpConnection>, private Poller::Watched {
 public:
  using Owner = ConnectionOwner;
  using Fault = ConnectionFault;

  // `owner` must outlive the connection or call Close. `loop` must outlive it.
  TcpConnection(TcpEventLoop& loop, Socket socket, const TcpOptions& options, std::unique_ptr<Handshake> handshake,
                Owner* owner);

  // The peer's hello must come within `hello_timeout`, the whole handshake within that of the options.
  void Start(absl::Duration hello_timeout);
  // Ends the connection at once and silently. The owner isn't called any more, and memory borrowed by the connection is
  // free.
  void Close();

  // Sends and receives through `stream` from now on. Call between frames only. The peer has agreed but may not know yet
  // that this side has moved, so the old stream isn't closed until something has come through the new one.
  void MoveTo(std::unique_ptr<ByteStream> stream);

  // Returns an empty frame, in the memory of a sent one if possible.
  OutgoingFrame NewFrame() { return outgoing_.NewFrame(); }
  // Gives memory for the control part of a later frame.
  void ReuseControl(std::string memory);
  // Queues a frame and sends what can be sent. Before OnReady only the handshake may use it.
  void Send(OutgoingFrame frame);

  // The frames that wait to be sent or are being sent.
  const OutgoingQueue& outgoing() const { return outgoing_; }
  // Takes back a frame of which nothing has been sent. False if no frame has that id, or it has been begun.
  bool Withdraw(uint64_t id) { return outgoing_.Withdraw(id); }
  // Takes the frames of which nothing has been sent; for OnClosed.
  std::vector<OutgoingFrame> TakeUnsent() { return outgoing_.TakeUnsent(); }
  // Discards the rest of the frame being received; the memory given for it is free.
  void DiscardBulk() { bulk_.Discard(); }
  // Ends the connection with `why` as if it had been lost; the owner gets OnClosed later.
  void Fail(absl::Status why, Fault fault = Fault::kLost);

  // While paused it receives nothing, and the peer's sends come to a halt.
  void SetPaused(bool paused);

  bool greeted() const { return greeted_; }  // the peer's hello has come
  bool ready() const { return handshake_ == nullptr; }
  uint16_t agreed() const { return agreed_; }  // once ready: the offers that both ends support
  // Where bulk may go beside the stream; null: nowhere.
  BulkAreas* areas() const { return stream_ == nullptr ? nullptr : stream_->areas(); }
  uint64_t bytes_received() const { return bytes_received_; }
  uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  enum class Part { kHandshake, kHeader, kControl, kPlace, kBulk };

  void OnReady(bool readable, bool writable, bool broken) override;

  void Read();
  bool Parse();
  bool ParseHandshake();
  void LimitHandshake(absl::Time until);
  bool ParseHeader();
  bool ParseControl();
  bool ParsePlace();
  bool ParseBulk();
  void EndFrame();
  ssize_t Receive(size_t* wanted);
  ssize_t ReceiveBeside();
  size_t TakeStaged(std::byte* to, size_t most);

  void Flush();
  ssize_t SendSome(size_t* wanted);
  ssize_t CopyBeside(OutgoingFrame& frame);
  void SetWriteWaiting(bool waiting);

  bool open() const { return owner_ != nullptr && !failed_; }
  bool MidFrame() const {
    return part_ == Part::kControl || part_ == Part::kPlace || part_ == Part::kBulk || staged_begin_ != staged_end_;
  }
  void CloseStreams();
  void Expect(Progress& progress, uint64_t bytes);
  void OnProgressTimer();

  TcpEventLoop& loop_;
  const TcpOptions& options_;
  FrameLimits limits_;
  Owner* owner_;                        // null once closed
  bool failed_ = false;                 // ended without Close; the owner is about to be told
  std::unique_ptr<ByteStream> stream_;  // null once closed
  std::unique_ptr<ByteStream> left_;    // the previous stream, until something has come through this one

  std::unique_ptr<Handshake> handshake_;  // null once passed
  absl::Time handshake_deadline_;
  bool greeted_ = false;
  EventLoop::TimerId handshake_timer_{};
  uint16_t agreed_ = 0;

  // Receiving. The bytes that arrive together with a header are staged, at most 4 KiB, so that a small message costs
  // one system call and a large one little copying.
  static constexpr size_t kStagingBytes = 4096;
  Part part_ = Part::kHandshake;
  std::array<std::byte, kStagingBytes> staging_;
  size_t staged_begin_ = 0;
  size_t staged_end_ = 0;
  FrameHeader header_;
  std::string control_;
  size_t control_filled_ = 0;
  IncomingBulk bulk_;
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
