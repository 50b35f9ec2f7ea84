// Tests the contract of collective.h on every implementation, against plain references.
#include "muster/collective/collective.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <latch>
#include <random>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "muster/base/testing/sanitizer_stride.h"
#include "muster/collective/share.h"
#include "muster/collective/testing/group_in_threads.h"
#include "muster/optim/kernels/half.h"

namespace muster::collective_test {
namespace {

using ::testing::Contains, ::testing::HasSubstr;
using Bytes = std::vector<std::byte>;

constexpr DType kFloats[] = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16};
// Nothing, one, fewer than there are ranks, odd, a little more than a piece, several chunks.
constexpr size_t kSizes[] = {0, 1, 3, 5, 1000, 33333, kSanitizerStride == 1 ? 150001 : 70001};

bool IsHalf(DType dtype) { return DTypeSize(dtype) == 2; }

// Converts element by element, the obvious way.
double ValueAt(DType dtype, const Bytes& bytes, size_t i) {
  const std::byte* at = bytes.data() + i * DTypeSize(dtype);
  if (dtype == DType::kFloat64) {
    double value = 0;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  float value = 0;
  if (IsHalf(dtype)) {
    PortableFloatsFromHalves(dtype, at, &value, 1);
  } else {
    std::memcpy(&value, at, sizeof value);
  }
  return value;
}

void SetAt(DType dtype, Bytes& bytes, size_t i, double value) {
  std::byte* at = bytes.data() + i * DTypeSize(dtype);
  const auto single = static_cast<float>(value);
  if (dtype == DType::kFloat64) {
    std::memcpy(at, &value, sizeof value);
  } else if (IsHalf(dtype)) {
    PortableHalvesFromFloats(dtype, &single, at, 1);
  } else {
    std::memcpy(at, &single, sizeof single);
  }
}

// Returns numbers whose sum depends on the order.
Bytes Contribution(DType dtype, size_t elements, int rank) {
  std::mt19937 random(1 + rank);
  std::normal_distribution<double> normal(0, rank % 2 == 0 ? 1 : 1000);
  Bytes bytes(elements * DTypeSize(dtype));
  for (size_t i = 0; i < elements; ++i) SetAt(dtype, bytes, i, normal(random));
  return bytes;
}

// The order in which an implementation adds up element i: from rank `first`, round to the rank before it.
using FirstOf = std::function<int(size_t element, size_t elements, int size)>;

Bytes Expected(DType dtype, size_t elements, int size, Reduction reduction, const FirstOf& first_of) {
  std::vector<Bytes> contributions;
  for (int rank = 0; rank < size; ++rank) contributions.push_back(Contribution(dtype, elements, rank));
  Bytes result(elements * DTypeSize(dtype));
  for (size_t i = 0; i < elements; ++i) {
    const int first = first_of(i, elements, size);
    const auto of = [&](int turn) { return ValueAt(dtype, contributions[(first + turn) % size], i); };
    if (dtype == DType::kFloat64) {
      double sum = of(0);
      for (int turn = 1; turn < size; ++turn) sum += of(turn);
      SetAt(dtype, result, i, reduction == Reduction::kMean ? sum / size : sum);
    } else {
      auto sum = static_cast<float>(of(0));
      for (int turn = 1; turn < size; ++turn) sum += static_cast<float>(of(turn));
      SetAt(dtype, result, i, reduction == Reduction::kMean ? sum / static_cast<float>(size) : sum);
    }
  }
  return result;
}

// Cuts the bytes into pieces anywhere between elements.
template <typename Spans, typename B>
Spans Cut(B& bytes, size_t element, int pieces) {
  Spans spans;
  size_t at = 0;
  for (int i = 0; i < pieces; ++i) {
    const size_t some = i + 1 == pieces ? bytes.size() - at : (bytes.size() - at) / element / 3 * element;
    spans.push_back({bytes.data() + at, some});
    at += some;
  }
  return spans;
}

struct Kind {
  const char* name;
  MakeGroup make;
  FirstOf first_of;
  bool sees_all = true;  // each rank knows whether any other rank has come, not only its neighbours
};

class CollectiveTest : public ::testing::TestWithParam<std::tuple<Kind, int>> {
 protected:
  const Kind& kind() const { return std::get<0>(GetParam()); }
  int size() const { return std::get<1>(GetParam()); }
  void AsAll(const std::function<void(Collective&)>& what) {
    AsEveryRank(kind().make(size()), [&](std::unique_ptr<Collective>& rank) { what(*rank); });
  }
};

TEST_P(CollectiveTest, AllReduceIsTheSumInEveryBitOnEveryRank) {
  for (const DType dtype : kFloats)
    for (const Reduction reduction : {Reduction::kSum, Reduction::kMean}) {
      std::vector<Bytes> expected;
      for (const size_t elements : kSizes)
        expected.push_back(Expected(dtype, elements, size(), reduction, kind().first_of));
      AsAll([&](Collective& rank) {
        for (size_t i = 0; i < std::size(kSizes); ++i) {
          const Bytes in = Contribution(dtype, kSizes[i], rank.rank());
          Bytes out(in.size()), before = in;
          const size_t element = DTypeSize(dtype);
          ASSERT_EQ(rank.AllReduce(Cut<Segments>(in, element, 3), Cut<MutableSegments>(out, element, 2), dtype,
                                   reduction, Soon()),
                    absl::OkStatus());
          EXPECT_EQ(out, expected[i]) << DTypeName(dtype) << " " << kSizes[i];
          EXPECT_EQ(in, before);
          Bytes same = in;  // in place
          ASSERT_EQ(rank.AllReduce({same}, {same}, dtype, reduction, Soon()), absl::OkStatus());
          EXPECT_EQ(same, expected[i]) << DTypeName(dtype) << " " << kSizes[i] << " in place";
        }
      });
    }
}

TEST_P(CollectiveTest, ReduceScatterGivesEachItsShareAndAllGatherPutsThemTogether) {
  for (const DType dtype : kFloats)
    for (const size_t elements : kSizes) {
      const Bytes expected = Expected(dtype, elements, size(), Reduction::kSum, kind().first_of);
      AsAll([&](Collective& rank) {
        const size_t element = DTypeSize(dtype);
        const Bytes in = Contribution(dtype, elements, rank.rank());
        const Share mine = ShareOf(elements, rank.rank(), size());
        Bytes share(mine.elements * element), whole(in.size());
        ASSERT_EQ(rank.ReduceScatter(Cut<Segments>(in, element, 2), Cut<MutableSegments>(share, element, 3), dtype,
                                     Reduction::kSum, Soon()),
                  absl::OkStatus());
        EXPECT_TRUE(std::equal(share.begin(), share.end(), expected.begin() + mine.begin * element));
        ASSERT_EQ(
            rank.AllGather(Cut<Segments>(share, element, 2), Cut<MutableSegments>(whole, element, 3), element, Soon()),
            absl::OkStatus());
        EXPECT_EQ(whole, expected);
      });
    }
}

TEST_P(CollectiveTest, BroadcastGivesAllWhatTheRootHas) {
  for (const size_t bytes : kSizes)
    AsAll([&](Collective& rank) {
      for (int root = 0; root < size(); ++root) {
        Bytes data(bytes, static_cast<std::byte>(rank.rank() + 1));
        ASSERT_EQ(rank.Broadcast(Cut<MutableSegments>(data, 1, 3), root, Soon()), absl::OkStatus());
        EXPECT_EQ(data, Bytes(bytes, static_cast<std::byte>(root + 1)));
      }
    });
}

TEST_P(CollectiveTest, ABarrierWaitsForAll) {
  std::atomic<int> arrived{0};
  AsAll([&](Collective& rank) {
    for (int round = 1; round <= 50; ++round) {
      ++arrived;
      ASSERT_EQ(rank.Barrier(Soon()), absl::OkStatus());
      EXPECT_GE(arrived, round * size());
    }
  });
}

TEST_P(CollectiveTest, ManyOperationsInARowDoNotMix) {
  AsAll([&](Collective& rank) {
    std::mt19937 random(7);  // the same on all ranks
    for (int i = 0; i < 300; ++i) {
      const size_t elements = random() % 40000;
      std::vector<float> data(elements, static_cast<float>(rank.rank() + i));
      switch (random() % 3) {
        case 0: {
          ASSERT_EQ(rank.AllReduce({AsBytes(data.data(), elements)}, {AsMutableBytes(data.data(), elements)},
                                   DType::kFloat32, Reduction::kMean, Soon()),
                    absl::OkStatus());
          const int ranks = size() * (size() - 1) / 2;
          const float sum = static_cast<float>(size() * i + ranks);
          for (const float value : data) ASSERT_EQ(value, sum / static_cast<float>(size()));
          break;
        }
        case 1: {
          const int root = static_cast<int>(random() % size());
          ASSERT_EQ(rank.Broadcast({AsMutableBytes(data.data(), elements)}, root, Soon()), absl::OkStatus());
          for (const float value : data) ASSERT_EQ(value, static_cast<float>(root + i));
          break;
        }
        default:
          ASSERT_EQ(rank.Barrier(Soon()), absl::OkStatus());
      }
    }
  });
}

TEST_P(CollectiveTest, WhoCallsSomethingElseIsNamedToAll) {
  if (size() < 2) GTEST_SKIP() << "takes two";
  AsAll([&](Collective& rank) {
    std::vector<float> data(rank.rank() == 1 ? 11 : 10);
    const Segments in = {AsBytes(data.data(), data.size())};
    const MutableSegments out = {AsMutableBytes(data.data(), data.size())};
    const absl::Status status = rank.AllReduce(in, out, DType::kFloat32, Reduction::kSum, Soon());
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    // The message names it and one of the others.
    EXPECT_THAT(status.message(), HasSubstr("worker:1"));
    EXPECT_THAT(status.message(), ::testing::AnyOf(HasSubstr("worker:0"), HasSubstr("worker:2")));
    EXPECT_THAT(status.message(), HasSubstr("40 bytes"));
    EXPECT_THAT(status.message(), HasSubstr("44 bytes"));
    EXPECT_EQ(rank.Barrier(Soon()), status) << "the group is of no use any more";
  });
}

TEST_P(CollectiveTest, ADifferentReductionIsNamedToo) {
  if (size() < 2) GTEST_SKIP() << "takes two";
  AsAll([&](Collective& rank) {
    std::vector<float> data(10);
    const absl::Status status =
        rank.AllReduce({AsBytes(data.data(), data.size())}, {AsMutableBytes(data.data(), data.size())}, DType::kFloat32,
                       rank.rank() == size() - 1 ? Reduction::kMean : Reduction::kSum, Soon());
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(status.message(), HasSubstr("mean"));
    EXPECT_THAT(status.message(), HasSubstr("sum"));
  });
}

TEST_P(CollectiveTest, SpansThatCannotBeMeantAreRefusedAndTheGroupGoesOn) {
  AsAll([&](Collective& rank) {
    std::vector<float> data(10), less(9);
    const Segments in = {AsBytes(data.data(), data.size())};
    EXPECT_EQ(
        rank.AllReduce(in, {AsMutableBytes(less.data(), less.size())}, DType::kFloat32, Reduction::kSum, Soon()).code(),
        absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(
        rank.AllReduce(in, {AsMutableBytes(data.data(), data.size())}, DType::kInt32, Reduction::kSum, Soon()).code(),
        absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(rank.AllReduce({in[0].first(6), in[0].subspan(6)}, {AsMutableBytes(data.data(), data.size())},
                             DType::kFloat32, Reduction::kSum, Soon())
                  .code(),
              absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(rank.Broadcast({}, size(), Soon()).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(rank.AllGather(in, {}, 4, Soon()).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(rank.Barrier(Soon()), absl::OkStatus());
  });
}

TEST_P(CollectiveTest, WhoDoesNotComeIsNamedAtTheDeadline) {
  if (size() < 2) GTEST_SKIP() << "takes two";
  std::atomic<int> failed{0};
  std::promise<void> all_failed;
  std::shared_future<void> others_failed = all_failed.get_future().share();
  // So that each comes well before the deadline of the others.
  std::latch begin(size() - 1);
  AsAll([&](Collective& rank) {
    if (rank.rank() == size() - 1) return others_failed.wait();
    begin.arrive_and_wait();
    const absl::Status status = rank.Barrier(RealClock().Now() + absl::Milliseconds(200));
    // Either its own deadline has passed, or it has heard that another rank gave up waiting for the same rank.
    EXPECT_TRUE(absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status)) << status;
    if (kind().sees_all || size() == 2) {
      EXPECT_THAT(status.message(), HasSubstr(RankNames(size()).back()));
    }
    EXPECT_EQ(rank.Barrier(Soon()), status);
    if (++failed == size() - 1) all_failed.set_value();
  });
}

TEST_P(CollectiveTest, WhoWaitsSaysForWhomAndWhenItIsOver) {
  if (size() < 2) GTEST_SKIP() << "takes two";
  const std::string last = RankNames(size()).back();
  std::promise<void> told;
  AsAll([&](Collective& rank) {
    if (rank.rank() == size() - 1) {
      EXPECT_EQ(told.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
      EXPECT_EQ(rank.Barrier(Soon()), absl::OkStatus());
      return;
    }
    std::vector<std::string> whom;
    rank.SetOnWait([&](const std::string& name, absl::Duration waited, const absl::Status& ended) {
      // Other ranks may be late at first.
      if (rank.rank() == 0 && name == last && !absl::c_linear_search(whom, last)) told.set_value();
      whom.push_back(name);
      EXPECT_EQ(waited > absl::ZeroDuration(), !name.empty());
      EXPECT_EQ(ended, absl::OkStatus());
    });
    EXPECT_EQ(rank.Barrier(Soon()), absl::OkStatus());
    if (rank.rank() != 0) return;
    EXPECT_THAT(whom, Contains(last));
    EXPECT_EQ(whom.back(), "");
  });
}

TEST_P(CollectiveTest, WhoWaitedForOneThatHasGoneSaysThatNobodyHasCome) {
  if (size() < 2) GTEST_SKIP() << "takes two";
  std::promise<void> told;
  AsEveryRank(kind().make(size()), [&](std::unique_ptr<Collective>& rank) {
    ASSERT_EQ(rank->Barrier(Soon()), absl::OkStatus());
    if (rank->rank() == size() - 1) {
      EXPECT_EQ(told.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
      return rank.reset();
    }
    absl::Status last_word;
    std::string last_name;
    bool said = false;
    rank->SetOnWait([&](const std::string& name, absl::Duration, const absl::Status& ended) {
      // Other ranks may be late at first.
      if (rank->rank() == 0 && name == RankNames(size()).back() && !std::exchange(said, true)) told.set_value();
      last_name = name;
      last_word = ended;
    });
    const absl::Status status = rank->Barrier(absl::InfiniteFuture());
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    if (rank->rank() != 0) return;
    EXPECT_EQ(last_name, "");
    EXPECT_EQ(last_word, status);
  });
}

TEST_P(CollectiveTest, WhoIsGoneIsNamedToAllLongBeforeTheDeadline) {
  if (size() < 2) GTEST_SKIP() << "takes two";
  AsEveryRank(kind().make(size()), [&](std::unique_ptr<Collective>& rank) {
    ASSERT_EQ(rank->Barrier(Soon()), absl::OkStatus());
    if (rank->rank() == size() - 1) return rank.reset();
    const absl::Status status = rank->Barrier(absl::InfiniteFuture());
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(status.message(), HasSubstr(RankNames(size()).back()));
  });
}

TEST_P(CollectiveTest, WhoLeavesInOrderEndsTheOthersInOrder) {
  if (size() < 2) GTEST_SKIP() << "takes two";
  AsEveryRank(kind().make(size()), [&](std::unique_ptr<Collective>& rank) {
    std::vector<float> data(100000, 1);
    ASSERT_EQ(rank->AllReduce({AsBytes(data.data(), data.size())}, {AsMutableBytes(data.data(), data.size())},
                              DType::kFloat32, Reduction::kSum, Soon()),
              absl::OkStatus());
    EXPECT_EQ(data.back(), static_cast<float>(size()));
    if (rank->rank() == 0) {
      rank->Leave();
      EXPECT_EQ(rank->Barrier(Soon()).code(), absl::StatusCode::kFailedPrecondition);
      return rank.reset();
    }
    const absl::Status status = rank->Barrier(Soon());
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  });
}

// ((r0 + r1) + r2) + …, whichever rank adds up.
int RankZeroFirst(size_t, size_t, int) { return 0; }

// Starts with the rank after the share's owner.
int RankAfterTheOwnerFirst(size_t element, size_t elements, int size) {
  return (static_cast<int>(element / ShareOf(elements, 0, size).elements) + 1) % size;
}

INSTANTIATE_TEST_SUITE_P(Ring, CollectiveTest,
                         ::testing::Combine(::testing::Values(Kind{"ring", MakeRingGroup, RankAfterTheOwnerFirst,
                                                                   false}),
                                            ::testing::Values(2, 3, 4)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + std::to_string(std::get<1>(info.param));
                         });
INSTANTIATE_TEST_SUITE_P(Shm, CollectiveTest,
                         ::testing::Combine(::testing::Values(Kind{"shm", MakeShmGroup, RankZeroFirst}),
                                            ::testing::Values(1, 2, 3, 4)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + std::to_string(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace muster::collective_test
