// A request of the kinds that may have bulk, as a ps takes it: its control message, decoded once and before the bulk is
// read, and where the bulk is. Used again for the next one, so that pushes which are alike allocate nothing. Used on
// the store's loop.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "muster/store/messages/messages.h"
#include "muster/store/service/buffer_pool.h"
#include "muster/transport/listener.h"

namespace muster {

class DecodedRequest final : public BulkTarget {
 public:
  [[nodiscard]] absl::Status Decode(const IncomingRequest& request);
  void Receive(BufferPool::Handle buffer, size_t bytes) {
    buffer_ = std::move(buffer);
    segments_.assign(1, buffer_->first(bytes));
  }
  // No bulk, and nothing of an Initialize, which may be large. `push_pull`, `rows` and `queue` keep their content, and
  // its memory, until Decode overwrites it.
  void Drop() {
    initialize = {};
    buffer_ = nullptr;
    segments_.clear();
    takes_lent_ = false;
    lent_ = {};
  }
  const MutableSegments& segments() const override { return segments_; }
  // A push's bulk is values, which do no harm when the client changes them meanwhile; rows have numbers, too.
  void StaysInSharedMemory() { takes_lent_ = true; }
  bool TakesLent() const override { return takes_lent_; }
  void Lend(LentBytes bulk) override { lent_ = std::move(bulk); }
  ByteSpan bytes() const {
    return takes_lent_ ? lent_.bytes() : segments_.empty() ? ByteSpan() : ByteSpan(segments_[0]);
  }

  PushPullRequest push_pull;
  InitializeRequest initialize;
  RowsRequest rows;
  QueueRequest queue;  // of all methods about queues but kOpenQueue

 private:
  BufferPool::Handle buffer_;
  MutableSegments segments_;
  bool takes_lent_ = false;
  LentBytes lent_;
};

class DecodedRequests {
 public:
  // A new one, or one that was given back and Dropped.
  std::unique_ptr<DecodedRequest> Take();
  // A DecodedRequest.
  void Reuse(std::unique_ptr<BulkTarget> used);

 private:
  std::vector<std::unique_ptr<DecodedRequest>> spare_;
};

}  // namespace muster
