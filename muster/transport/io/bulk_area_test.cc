#include "muster/transport/io/bulk_area.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace muster::bulk_area_test {
namespace {

constexpr size_t kArea = size_t{4} << 20;

class BulkAreaTest : public ::testing::Test {
 protected:
  // Hands a bulk part over as a writer does, and begins to read it as the reader does.
  uint64_t Send(size_t bytes, int fill) {
    Extent extent = outgoing_->Reserve(bytes);
    EXPECT_TRUE(extent);
    std::memset(extent.memory().data(), fill, bytes);
    extent.Publish(bytes);
    extent.HandOver();
    return extent.offset();
  }

  const std::shared_ptr<SharedMemory> memory_ =
      SharedMemory::Make(RandomNonce(), {.ring_bytes = 4096, .area_bytes = kArea})->memory;
  const MutableByteSpan area_ = memory_->area_to(SharedMemory::Side::kServer);
  const std::shared_ptr<OutgoingArea> outgoing_ = std::make_shared<OutgoingArea>(memory_, area_);
  IncomingArea incoming_{memory_, area_};
};

TEST_F(BulkAreaTest, TheReaderGetsWhatIsThereSoFar) {
  Extent extent = outgoing_->Reserve(1000);
  ASSERT_EQ(extent.memory().size(), 1000);
  ASSERT_TRUE(incoming_.Begin(extent.offset(), 1000));
  EXPECT_FALSE(incoming_.HasBytes());
  EXPECT_TRUE(incoming_.Take(1000).empty());
  std::memset(extent.memory().data(), 5, 300);
  extent.Publish(300);
  EXPECT_TRUE(incoming_.HasBytes());
  EXPECT_EQ(incoming_.Take(200).size(), 200);
  EXPECT_EQ(incoming_.Take(200).size(), 100);
  EXPECT_FALSE(incoming_.HasBytes());
  extent.Publish(1000);
  const ByteSpan rest = incoming_.Take(1000);
  EXPECT_EQ(rest.size(), 700);
  EXPECT_EQ(rest.data(), extent.memory().data() + 300) << "nothing is copied";
}

TEST_F(BulkAreaTest, APlaceIsUsedAgainOnceTheReaderIsDone) {
  const uint64_t first = Send(100000, 1);
  ASSERT_TRUE(incoming_.Begin(first, 100000));
  const uint64_t second = Send(100000, 2);
  EXPECT_NE(second, first);
  incoming_.Take(100000);
  incoming_.End();
  EXPECT_FALSE(incoming_.active());
  EXPECT_EQ(Send(100000, 3), first);
  for (int i = 0; i < 1000; ++i) {
    const uint64_t next = Send(5000, i);
    ASSERT_TRUE(incoming_.Begin(next, 5000));
    incoming_.End();
  }
  EXPECT_LT(outgoing_->committed(), 250000) << "the same memory over and over";
}

TEST_F(BulkAreaTest, BorrowedBytesStayUntilTheyAreGivenBack) {
  const uint64_t first = Send(100000, 1);
  ASSERT_TRUE(incoming_.Begin(first, 100000));
  std::optional<BorrowedBytes> borrowed(incoming_.Borrow());
  incoming_.Take(100000);
  incoming_.End();
  EXPECT_NE(Send(100000, 2), first);
  EXPECT_EQ(borrowed->bytes()[99999], std::byte{1});
  BorrowedBytes moved = std::move(*borrowed);
  borrowed.reset();
  EXPECT_NE(Send(100000, 2), first) << "the one that was moved from gives nothing back";
  moved = BorrowedBytes();
  EXPECT_EQ(Send(100000, 3), first);
}

TEST_F(BulkAreaTest, AnExtentThatNobodyHeardOfIsFreeAtOnce) {
  const uint64_t first = outgoing_->Reserve(1000).offset();
  EXPECT_EQ(outgoing_->Reserve(1000).offset(), first);
  Extent kept = outgoing_->Reserve(1000);
  Extent moved = std::move(kept);
  EXPECT_NE(outgoing_->Reserve(1000).offset(), moved.offset());
}

TEST_F(BulkAreaTest, AFullAreaSaysSo) {
  EXPECT_FALSE(outgoing_->Reserve(kArea));
  EXPECT_FALSE(outgoing_->Reserve(std::numeric_limits<size_t>::max() - 10));
  const Extent most = outgoing_->Reserve(kArea - 64);
  EXPECT_TRUE(most);
  EXPECT_FALSE(outgoing_->Reserve(1));
}

TEST_F(BulkAreaTest, AGapBetweenTwoIsFound) {
  const Extent before = outgoing_->Reserve(1000);
  Extent between = outgoing_->Reserve(64000);
  const Extent after = outgoing_->Reserve(1000);
  const uint64_t gap = between.offset();
  between = Extent();
  EXPECT_GT(outgoing_->Reserve(65000).offset(), after.offset()) << "too large for it";
  EXPECT_EQ(outgoing_->Reserve(64000).offset(), gap);
}

TEST_F(BulkAreaTest, WhatIsNotNeededAnyMoreIsGivenBackToTheSystem) {
  { const Extent large = outgoing_->Reserve(kArea - 64); }
  EXPECT_EQ(outgoing_->committed(), kArea);
  for (int i = 0; i < 600; ++i) EXPECT_TRUE(outgoing_->Reserve(1000));
  EXPECT_LE(outgoing_->committed(), kArea / 2);
  Extent large = outgoing_->Reserve(kArea - 64);
  ASSERT_TRUE(large) << "and taken again";
  std::memset(large.memory().data(), 1, large.memory().size());
}

// Positions and lengths come from the other side.
TEST_F(BulkAreaTest, PlacesThatCantBeAreRefused) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  EXPECT_TRUE(incoming_.Begin(kArea - 128, 64));
  for (const auto& [offset, bytes] : std::vector<std::pair<uint64_t, uint64_t>>{{1, 10},
                                                                                {32, 10},
                                                                                {kArea - 128, 65},
                                                                                {kArea - 64, 1},
                                                                                {kArea, 0},
                                                                                {kMost - 63, 10},
                                                                                {0, kArea},
                                                                                {64, kMost - 127},
                                                                                {0, kMost}}) {
    EXPECT_FALSE(incoming_.Begin(offset, bytes)) << offset << " " << bytes;
  }
}

TEST_F(BulkAreaTest, MoreThanAllIsNotReady) {
  const uint64_t offset = Send(1000, 1);
  ASSERT_TRUE(incoming_.Begin(offset, 1000));
  auto* ready = reinterpret_cast<std::atomic<uint64_t>*>(area_.data() + offset);
  ready->store(~uint64_t{0});
  EXPECT_EQ(incoming_.Take(5000).size(), 1000);
  ready->store(3);  // and the count goes back
  EXPECT_FALSE(incoming_.HasBytes());
  EXPECT_TRUE(incoming_.Take(5000).empty());
}

}  // namespace
}  // namespace muster::bulk_area_test
