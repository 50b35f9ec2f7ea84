#include "muster/transport/shm/byte_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace muster::byte_ring_test {
namespace {

constexpr size_t kRing = 4096;

class ByteRingTest : public ::testing::Test {
 protected:
  static iovec Piece(std::string& text, size_t at, size_t bytes) { return {text.data() + at, bytes}; }

  const std::shared_ptr<SharedMemory> memory_ =
      SharedMemory::Make(RandomNonce(), {.ring_bytes = kRing, .area_bytes = 4096})->memory;
  const SharedMemory::Ring ring_ = memory_->ring_to(SharedMemory::Side::kServer);
  RingWriter writer_{ring_};
  RingReader reader_{ring_};
};

TEST_F(ByteRingTest, WhatGoesInComesOutInPiecesOfAnySizeAroundTheEnd) {
  std::minstd_rand random(1);
  std::string sent(100000, '\0'), received(sent.size(), '\0');
  for (char& c : sent) c = static_cast<char>(random());
  size_t in = 0, out = 0;
  while (out < sent.size()) {
    const size_t first = std::min<size_t>(random() % 1500, sent.size() - in);
    const size_t second = std::min<size_t>(random() % 1500, sent.size() - in - first);
    const iovec give[] = {Piece(sent, in, first), {nullptr, 0}, Piece(sent, in + first, second)};
    const ssize_t written = writer_.Write(give, 3);
    ASSERT_GE(written, 0);
    in += written;
    ASSERT_LE(in - out, kRing);
    EXPECT_EQ(writer_.HasRoom(), in - out < kRing);
    EXPECT_EQ(reader_.HasBytes(), in > out);
    const size_t wanted = std::min<size_t>(random() % 1500, sent.size() - out);
    const iovec take[] = {Piece(received, out, wanted / 2), Piece(received, out + wanted / 2, wanted - wanted / 2)};
    const ssize_t read = reader_.Read(take, 2);
    ASSERT_EQ(read, static_cast<ssize_t>(std::min(wanted, in - out)));
    out += read;
  }
  EXPECT_TRUE(sent == received);
}

TEST_F(ByteRingTest, AFullRingTakesNothingUntilSomethingIsRead) {
  std::string bytes(kRing + 100, 'x'), out(10, '\0');
  const iovec all = Piece(bytes, 0, bytes.size());
  EXPECT_EQ(writer_.Write(&all, 1), static_cast<ssize_t>(kRing));
  EXPECT_FALSE(writer_.HasRoom());
  EXPECT_EQ(writer_.Write(&all, 1), 0);
  const iovec take = Piece(out, 0, out.size());
  EXPECT_EQ(reader_.Read(&take, 1), 10);
  EXPECT_TRUE(writer_.HasRoom());
  EXPECT_EQ(writer_.Write(&all, 1), 10);
}

TEST_F(ByteRingTest, CountsThatCantBeAreSeen) {
  std::string bytes(100, 'x');
  const iovec some = Piece(bytes, 0, bytes.size());
  ASSERT_EQ(writer_.Write(&some, 1), 100);
  for (const uint64_t garbage : {uint64_t{101}, ~uint64_t{0} - kRing, uint64_t{1} << 63}) {
    ring_.read->store(garbage);
    EXPECT_TRUE(writer_.HasRoom());
    EXPECT_EQ(writer_.Write(&some, 1), -1) << garbage;
  }
  for (const uint64_t garbage : {uint64_t{kRing + 1}, ~uint64_t{0}, uint64_t{1} << 63}) {
    ring_.written->store(garbage);
    EXPECT_TRUE(reader_.HasBytes());
    EXPECT_EQ(reader_.Read(&some, 1), -1) << garbage;
  }
}

}  // namespace
}  // namespace muster::byte_ring_test
