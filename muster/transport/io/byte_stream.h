// What carries a connection's bytes: a socket, or memory that both ends have mapped (shm/). Nothing blocks; the user is
// told when to try again. Used on its loop; not thread-safe. Internal to the transport.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <memory>

#include "muster/transport/io/bulk_area.h"
#include "muster/transport/io/poller.h"

namespace muster {

// The areas for large bulk beside the stream, which is read where it lies.
struct BulkAreas {
  std::shared_ptr<OutgoingArea> outgoing;
  IncomingArea incoming;
  size_t least_beside = 0;  // shorter bulk goes through the stream
};

class ByteStream {
 public:
  virtual ~ByteStream() = default;  // ends the stream: the peer sees an end of file

  // Call once, before anything else. `user` is told about the events that it has an interest in, until the stream ends.
  virtual void Start(Poller::Interest interest, Poller::Watched* user) = 0;
  virtual void SetInterest(Poller::Interest interest) = 0;
  // Tells `user` nothing more; the peer doesn't notice.
  virtual void Stop() = 0;

  // These work as sendmsg and recvmsg. They return -1 with errno: EAGAIN, try again when told; EBADMSG, the peer breaks
  // the rules.
  virtual ssize_t Send(const iovec* vectors, size_t count, bool more_follows) = 0;
  virtual ssize_t Receive(const iovec* vectors, size_t count) = 0;

  virtual BulkAreas* areas() { return nullptr; }
  // Tells the peer that extents have been published.
  virtual void Notify() {}
  // True if no more bytes will arrive, except those that are already there.
  virtual bool ended() const { return false; }
};

}  // namespace muster
