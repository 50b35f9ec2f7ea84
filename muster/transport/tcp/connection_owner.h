// The user of a TcpConnection: a channel, or a server for one of its clients. Internal to tcp/.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/base/bytes.h"
#include "muster/transport/borrowed_bytes.h"
#include "muster/transport/frame.h"

namespace muster {

enum class ConnectionFault { kLost, kMalformed, kStalled, kHandshake };

// Called on the loop. Any of these may close the connection.
class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;
  // The handshake has been passed.
  virtual void OnReady() = 0;
  // The header and control of a frame have arrived. Returns where its bulk must go (at least as long as the bulk, valid
  // until the frame's end), or null to discard it. An error closes the connection as kMalformed.
  virtual absl::StatusOr<const MutableSegments*> OnFrame(const FrameHeader& header, std::string control) = 0;
  // Called after an OnFrame that returned memory for bulk beside the stream. True: the bulk may stay in shared memory
  // instead. OnBorrowed then receives it; it is complete only at OnFrameEnd.
  virtual bool BorrowsBulk() { return false; }
  virtual void OnBorrowed(BorrowedBytes /*bulk*/) {}
  // The last byte of that frame has arrived.
  virtual void OnFrameEnd() = 0;
  // This many more bytes were sent or received, including those of the handshake.
  virtual void OnMoved(uint64_t /*sent*/, uint64_t /*received*/) {}
  // Some frames have been handed to the kernel.
  virtual void OnSent() {}
  // The connection has ended without Close. Never called from inside one of the owner's calls, nor after Close. A frame
  // that has begun won't end.
  virtual void OnClosed(const absl::Status& why, ConnectionFault fault) = 0;
};

}  // namespace muster
