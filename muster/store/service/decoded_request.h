// An incoming request with bulk data: the control message, decoded once before the bulk arrives, and the buffer that
// receives the bulk. Reused, so that equal pushes allocate nothing. Used on the store's loop.
#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
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
  // No bulk, and nothing of an Initialize, which may be large. The other messages keep their content, and its memory,
  // until Decode overwrites it.
  void Drop() {
    std::get<InitializeRequest>(messages_) = {};
    buffer_ = nullptr;
    segments_.clear();
    borrows_bulk_ = false;
    borrowed_ = {};
  }
  const MutableSegments& segments() const override { return segments_; }
  // Leaves the bulk in shared memory. For a push's bulk only: its values do no harm if the client changes them
  // meanwhile, but rows also have numbers.
  void StaysInSharedMemory() { borrows_bulk_ = true; }
  bool BorrowsBulk() const override { return borrows_bulk_; }
  void ReceiveBorrowed(BorrowedBytes bulk) override { borrowed_ = std::move(bulk); }
  ByteSpan bytes() const {
    return borrows_bulk_ ? borrowed_.bytes() : segments_.empty() ? ByteSpan() : ByteSpan(segments_[0]);
  }

  // Whether such messages may have bulk, so that they are decoded into here.
  template <typename Message>
  static constexpr bool kHas = std::is_same_v<Message, PushPullRequest> || std::is_same_v<Message, InitializeRequest> ||
                               std::is_same_v<Message, RowsRequest> || std::is_same_v<Message, QueueRequest>;
  template <typename Message>
  const Message& Get() const {
    return std::get<Message>(messages_);
  }

 private:
  template <typename Message>
  absl::Status DecodeAs(const std::string& control) {
    if constexpr (kHas<Message>) return muster::Decode(control, std::get<Message>(messages_));
    return absl::OkStatus();
  }

  std::tuple<PushPullRequest, InitializeRequest, RowsRequest, QueueRequest> messages_;
  BufferPool::Handle buffer_;
  MutableSegments segments_;
  bool borrows_bulk_ = false;
  BorrowedBytes borrowed_;
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
