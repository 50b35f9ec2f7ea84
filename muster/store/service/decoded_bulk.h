// An incoming request with bulk data: the control message, decoded once before the bulk arrives, and the buffer that
// receives the bulk. Reused, so that equal pushes allocate nothing. Used on the store's loop.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "muster/store/messages/messages.h"
#include "muster/store/service/buffer_pool.h"
#include "muster/transport/listener.h"

namespace muster {

class DecodedBulk final : public BulkTarget {
 public:
  [[nodiscard]] absl::Status Decode(const IncomingRequest& request);
  void Receive(BufferPool::Handle buffer, size_t bytes) {
    buffer_ = std::move(buffer);
    segments_.assign(1, buffer_->first(bytes));
  }
  // Drops the bulk, and the content of an Initialize, which may be large. `push_pull`, `rows` and `queue` keep their
  // content, and its memory, until Decode overwrites it.
  void Drop() {
    initialize = {};
    buffer_ = nullptr;
    segments_.clear();
    takes_lent_ = false;
    lent_ = {};
  }
  const MutableSegments& segments() const override { return segments_; }
  // Leaves the bulk in shared memory. For a push's bulk only: its values do no harm if the client changes them
  // meanwhile, but rows also have numbers.
  void StaysInSharedMemory() { takes_lent_ = true; }
  bool TakesLent() const override { return takes_lent_; }
  void Lend(LentBytes bulk) override { lent_ = std::move(bulk); }
  ByteSpan bytes() const {
    return takes_lent_ ? lent_.bytes() : segments_.empty() ? ByteSpan() : ByteSpan(segments_[0]);
  }

  PushPullRequest push_pull;
  InitializeRequest initialize;
  RowsRequest rows;
  QueueRequest queue;  // for all queue methods except kOpenQueue

 private:
  BufferPool::Handle buffer_;
  MutableSegments segments_;
  bool takes_lent_ = false;
  LentBytes lent_;
};

class DecodedBulks {
 public:
  // Returns a new one, or one that was given back and Dropped.
  std::unique_ptr<DecodedBulk> Take();
  // Takes back a DecodedBulk.
  void Reuse(std::unique_ptr<BulkTarget> used);

 private:
  std::vector<std::unique_ptr<DecodedBulk>> spare_;
};

}  // namespace muster
