// A ByteStream through memory that both ends have mapped, with areas for large bulk beside it (docs/shared_memory.md,
// sections 2 and 3). The unix socket shows when the peer is gone, and wakes a sleeping peer. Internal to the transport.
#pragma once

#include <memory>
#include <optional>

#include "muster/transport/io/bulk_area.h"
#include "muster/transport/io/byte_stream.h"
#include "muster/transport/io/poller.h"
#include "muster/transport/io/shared_memory.h"
#include "muster/transport/io/shared_memory_options.h"
#include "muster/transport/io/socket.h"
#include "muster/transport/shm/byte_ring.h"

namespace muster {

class ShmStream final : public ByteStream, private Poller::Memory, private Poller::Watched {
 public:
  // `socket` is connected to the other end and non-blocking. `poller` must outlive it.
  ShmStream(Poller& poller, Socket socket, std::shared_ptr<const SharedMemory> memory, SharedMemory::Side side,
            const SharedMemoryOptions& options);
  ~ShmStream() override;

  void Start(Poller::Interest interest, Poller::Watched* user) override;
  void SetInterest(Poller::Interest interest) override { interest_ = interest; }
  void Stop() override;
  ssize_t Send(const iovec* vectors, size_t count, bool more_follows) override;
  ssize_t Receive(const iovec* vectors, size_t count) override;
  BulkAreas* areas() override { return &areas_; }
  void Notify() override { WakePeer(1); }
  bool ended() const override { return ended_; }

 private:
  // Poller::Memory
  bool Ready() const override;
  void OnReady() override;
  void SetAsleep(bool asleep) override;
  // Poller::Watched, for the unix socket
  void OnReady(bool readable, bool writable, bool broken) override;

  bool Readable() const;
  bool Writable() const { return interest_.write && outgoing_.HasRoom(); }
  // Wakes the peer if it sleeps and any of these bits is in its word.
  void WakePeer(uint32_t wants);

  Poller& poller_;
  Socket socket_;
  const std::shared_ptr<const SharedMemory> memory_;
  std::atomic<uint32_t>& my_sleep_;
  std::atomic<uint32_t>& peers_sleep_;
  RingWriter outgoing_;
  RingReader incoming_;
  BulkAreas areas_;
  Poller::Interest interest_;
  Poller::Watched* user_ = nullptr;
  std::optional<Poller::Id> watch_;  // the socket's, until its end
  bool ended_ = false;
};

}  // namespace muster
