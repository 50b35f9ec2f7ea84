// Who uses a TcpConnection: a channel, or a server for one of its clients. Internal to tcp/.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/base/bytes.h"
#include "muster/transport/frame.h"
#include "muster/transport/lent_bytes.h"

namespace muster {

enum class ConnectionFault { kLost, kMalformed, kStalled, kHandshake };

// Called on the loop. Any of these may close the connection.
class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;
  // The handshake has been passed.
  virtual void OnReady() = 0;
  // Header and control of a frame have arrived. Where its bulk goes (valid until the frame's end, at least as long as
  // its bulk), or null to throw it away. An error closes the connection as kMalformed.
  virtual absl::StatusOr<const MutableSegments*> OnFrame(const FrameHeader& header, std::string control) = 0;
  // After an OnFrame that named memory, of bulk beside the stream: true, if it may be left in shared memory instead,
  // where it is. It is then given to OnLent; not all of it is there before OnFrameEnd.
  virtual bool WantsLent() { return false; }
  virtual void OnLent(LentBytes /*bulk*/) {}
  // The last byte of that frame has arrived.
  virtual void OnFrameEnd() = 0;
  // So many bytes more have gone out or come in, those of the handshake included.
  virtual void OnMoved(uint64_t /*sent*/, uint64_t /*received*/) {}
  // Some frames have been handed to the kernel.
  virtual void OnSent() {}
  // The connection has ended by itself. Never from inside a call of the owner's; not after Close. A frame that was
  // begun won't end.
  virtual void OnClosed(const absl::Status& why, ConnectionFault fault) = 0;
};

}  // namespace muster
