// Copies bytes between a pair of descriptors and a socket, both ways, until one of them ends: ssh's stdin and stdout,
// and the socket of an agent. Never blocks and holds at most 64 KiB for each direction: who reads slowly slows down the
// other end. Used by the loop's thread.
#pragma once

#include <array>
#include <cstddef>

#include "absl/status/status.h"
#include "muster/launch/system/fd_loop.h"

namespace muster {

class StreamBridge {
 public:
  // Borrows `loop` and the descriptors. Makes these non-blocking; those of `in` and `out`, which other processes may
  // share, only while it lives. SIGPIPE must be ignored.
  StreamBridge(FdLoop& loop, int in, int out, int socket);
  ~StreamBridge();
  StreamBridge(const StreamBridge&) = delete;
  StreamBridge& operator=(const StreamBridge&) = delete;

  // One of them has ended; what had been read from it before is written.
  bool done() const { return done_; }

 private:
  struct Flow {
    int from;
    int to;
    std::array<char, 64 << 10> bytes;
    size_t begin = 0;
    size_t end = 0;

    bool empty() const { return begin == end; }
  };

  // Moves what there is without waiting. Returns false at the end of either side.
  static bool Move(Flow& flow);
  void OnReady();
  void Watch(short in, short out, short socket);

  FdLoop& loop_;
  Flow up_;    // in → socket
  Flow down_;  // socket → out
  const int in_flags_;
  const int out_flags_;
  bool done_ = false;
};

}  // namespace muster
