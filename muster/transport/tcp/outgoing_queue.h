// The frames that wait to be sent on one connection, and how much of the first has been sent. It knows nothing of
// sockets: it says which memory is next and is told how much of it was sent. Not thread-safe. Internal to tcp/.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "muster/base/bytes.h"
#include "muster/transport/frame.h"
#include "muster/transport/io/bulk_area.h"

namespace muster {

struct OutgoingFrame {
  uint64_t id = 0;
  bool bare = false;  // no header: the bytes of a handshake
  FrameHeaderBytes header;
  std::string control;
  Segments bulk;                           // borrowed
  std::shared_ptr<const void> keep_alive;  // released when the last byte has been handed to the kernel
  // True: the bulk must go beside the stream, into `extent`, once that exists; `place`, its position, follows the
  // control.
  bool beside = false;
  Extent extent;
  std::array<std::byte, kPlaceBytes> place;
  void PutBeside(Extent where);
};

class OutgoingQueue {
 public:
  // Returns an empty frame, in the memory of a finished one if possible.
  OutgoingFrame NewFrame();
  // Releases what the frame keeps alive, and keeps its memory for NewFrame.
  void Reuse(OutgoingFrame frame);
  void Push(OutgoingFrame frame);

  bool empty() const { return first_ == frames_.size(); }
  size_t size() const { return frames_.size() - first_; }
  uint64_t bytes() const { return bytes_; }
  bool Holds(uint64_t id) const;

  // Returns the next frame, if nothing of it has been sent and it isn't decided yet where its bulk goes.
  OutgoingFrame* Unplaced();
  // Decides that: the bulk goes into `extent`, or with the stream if that is empty.
  void Place(Extent extent);
  // Returns the frame whose bulk must be copied beside the stream next: everything before the bulk has been sent.
  OutgoingFrame* Placing();
  uint64_t PlacedBytes() const;  // how much of that bulk has been copied

  // Fills at most `most` vectors with the next memory of the stream (or of Placing's bulk); `bytes` receives their
  // total. Returns how many it filled.
  size_t Gather(iovec* vectors, size_t most, size_t* bytes) const;

  // `bytes` of what Gather returned were sent. Moves finished frames to `done`; destroy them when that can do no harm.
  void Advance(size_t bytes, std::vector<OutgoingFrame>& done);

  // Removes a frame of which nothing has been sent. False if no frame has that id, or it has been begun.
  bool Withdraw(uint64_t id);
  // Removes all frames of which nothing has been sent.
  std::vector<OutgoingFrame> TakeUnsent();
  void Clear();

 private:
  // A position in the first frame: first header and control, then the segments.
  struct Cursor {
    size_t head = 0;     // bytes sent of header, control and place
    size_t segment = 0;  // the next byte of bulk
    size_t offset = 0;
    uint64_t sent = 0;  // bytes sent of the whole frame
  };

  static size_t HeaderBytes(const OutgoingFrame& frame) { return frame.bare ? 0 : kFrameHeaderBytes; }
  static size_t HeadBytes(const OutgoingFrame& frame) {
    return HeaderBytes(frame) + frame.control.size() + (frame.extent ? frame.place.size() : 0);
  }
  static uint64_t FrameBytes(const OutgoingFrame& frame);

  std::vector<OutgoingFrame> frames_;  // those before first_ are done
  size_t first_ = 0;
  Cursor cursor_;
  std::vector<OutgoingFrame> spare_;
  uint64_t bytes_ = 0;  // not sent yet
};

}  // namespace muster
