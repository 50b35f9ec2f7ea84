#include "muster/transport/tcp/outgoing_queue.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::outgoing_queue_test {
namespace {

const std::string kBulk = "0123456789";

OutgoingFrame Frame(uint64_t id, const std::string& control, Segments bulk = {}) {
  OutgoingFrame frame;
  frame.id = id;
  frame.header.fill(std::byte{'h'});
  frame.control = control;
  frame.bulk = std::move(bulk);
  return frame;
}

Segments Split(size_t at) {
  const ByteSpan bulk = AsBytes(kBulk.data(), kBulk.size());
  return {bulk.first(at), {}, bulk.subspan(at)};
}

// Drains the queue, `piece` bytes at a time, with at most `vectors` pieces of memory at once.
std::string Drain(OutgoingQueue& queue, size_t piece, size_t vectors, std::vector<OutgoingFrame>& done) {
  std::string out;
  while (!queue.empty()) {
    std::vector<iovec> gathered(vectors);
    size_t bytes = 0;
    const size_t count = queue.Gather(gathered.data(), vectors, &bytes);
    std::string next;
    for (size_t i = 0; i < count; ++i) next.append(static_cast<char*>(gathered[i].iov_base), gathered[i].iov_len);
    EXPECT_EQ(next.size(), bytes);
    EXPECT_LE(bytes, queue.bytes());
    const size_t sent = std::min(piece, bytes);
    out += next.substr(0, sent);
    queue.Advance(sent, done);
  }
  EXPECT_EQ(queue.bytes(), 0);
  return out;
}

TEST(OutgoingQueueTest, EverythingGoesOutInOrderInPiecesOfAnySize) {
  const std::string header(kFrameHeaderBytes, 'h');
  const std::string expected = header + "one" + kBulk + header + header + "three" + "raw" + header + kBulk;
  for (size_t piece : {1, 3, 39, 40, 41, 50, 1000}) {
    for (size_t vectors : {1, 2, 3, 64}) {
      OutgoingQueue queue;
      queue.Push(Frame(1, "one", Split(4)));
      queue.Push(Frame(2, ""));
      queue.Push(Frame(3, "three"));
      OutgoingFrame raw = Frame(0, "raw");
      raw.bare = true;
      queue.Push(std::move(raw));
      queue.Push(Frame(5, "", Split(10)));
      EXPECT_EQ(queue.bytes(), expected.size());
      std::vector<OutgoingFrame> done;
      EXPECT_EQ(Drain(queue, piece, vectors, done), expected) << piece << " " << vectors;
      EXPECT_EQ(done.size(), 5);
    }
  }
}

TEST(OutgoingQueueTest, WhatHasBegunCantBeWithdrawn) {
  OutgoingQueue queue;
  for (uint64_t id : {1, 2, 3, 4}) queue.Push(Frame(id, std::to_string(id)));
  std::vector<OutgoingFrame> done;
  queue.Advance(kFrameHeaderBytes + 1 + 1, done);
  ASSERT_EQ(done.size(), 1);
  EXPECT_FALSE(queue.Holds(1));
  EXPECT_TRUE(queue.Holds(2));
  EXPECT_FALSE(queue.Withdraw(1));
  EXPECT_FALSE(queue.Withdraw(2));
  EXPECT_TRUE(queue.Withdraw(3));
  EXPECT_FALSE(queue.Holds(3));
  const std::vector<OutgoingFrame> unsent = queue.TakeUnsent();
  ASSERT_EQ(unsent.size(), 1);
  EXPECT_EQ(unsent[0].id, 4);
  EXPECT_EQ(queue.bytes(), kFrameHeaderBytes);
  EXPECT_EQ(queue.size(), 1);
}

TEST(OutgoingQueueTest, WhatIsKeptAliveIsReleasedWithItsFrame) {
  auto memory = std::make_shared<int>(0);
  OutgoingQueue queue;
  OutgoingFrame frame = Frame(1, "");
  frame.keep_alive = memory;
  queue.Push(std::move(frame));
  std::vector<OutgoingFrame> done;
  queue.Advance(kFrameHeaderBytes - 1, done);
  EXPECT_TRUE(done.empty());
  queue.Advance(1, done);
  EXPECT_EQ(memory.use_count(), 2) << "by `done`";
  done.clear();
  EXPECT_EQ(memory.use_count(), 1);
}

TEST(OutgoingQueueTest, ALongQueueStaysShortInMemory) {
  OutgoingQueue queue;
  std::vector<OutgoingFrame> done;
  queue.Push(Frame(1, ""));
  for (uint64_t id = 2; id < 10000; ++id) {
    queue.Push(Frame(id, ""));
    queue.Advance(kFrameHeaderBytes, done);
    EXPECT_EQ(queue.size(), 1);
    EXPECT_TRUE(queue.Holds(id));
  }
}

}  // namespace
}  // namespace muster::outgoing_queue_test
