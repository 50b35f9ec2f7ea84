// Map with one thread and with several, over rows and over a stream.
#include <gmock/gmock.h>

#include <stdexcept>
#include <tuple>

#include "muster/base/mutex.h"
#include "muster/data/dataset/dataset.h"
#include "muster/data/testing/numbered_examples.h"

namespace muster::map_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr;

class MapTest : public testing::TestWithParam<std::tuple<bool, int>> {
 protected:
  static Dataset Source(int64_t rows) { return std::get<0>(GetParam()) ? StreamedNumbers(rows) : NumberedRows(rows); }
  static MapOptions Options() { return {.threads = std::get<1>(GetParam())}; }
};
INSTANTIATE_TEST_SUITE_P(Ways, MapTest, testing::Combine(testing::Bool(), testing::Values(1, 4)), [](const auto& way) {
  return std::string(std::get<0>(way.param) ? "Streamed" : "Memory") + std::to_string(std::get<1>(way.param));
});

TEST_P(MapTest, ChangesExamplesInTheirOrder) {
  auto stream = OpenOrFail(Source(200)
                               .Map(
                                   [](Example& example) {
                                     const auto number = static_cast<double>(example.labels.As<int64_t>()[0]);
                                     example.features = {{"half", Array::Scalar(number / 2)}};
                                     return absl::OkStatus();
                                   },
                                   Options())
                               .Batch(7)
                               .Repeat(2));
  Example batch;
  int64_t next = 0;
  while (*stream->Next(batch)) {
    ASSERT_EQ(batch.features.size(), 1);
    for (const double half : batch.Find("half")->As<double>()) EXPECT_EQ(half, static_cast<double>(next++ % 200) / 2);
  }
  EXPECT_EQ(next, 400);
}

TEST_P(MapTest, AnErrorComesBehindTheExamplesBeforeItAndSaysOfWhich) {
  auto stream = OpenOrFail(Source(10).Map(
      [](Example& example) {
        return example.labels.As<int64_t>()[0] == 5 ? absl::DataLossError("no such picture") : absl::OkStatus();
      },
      Options()));
  Example example;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(*stream->Next(example)) << i;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(stream->Next(example).status(), absl::DataLossError("map: example 5: no such picture"));
  }
}

TEST_P(MapTest, AnExceptionIsAnError) {
  auto stream =
      OpenOrFail(Source(3).Map([](Example&) -> absl::Status { throw std::runtime_error("out of range"); }, Options()));
  Example example;
  const absl::Status status = stream->Next(example).status();
  EXPECT_TRUE(absl::IsInternal(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("map: example 0: the function threw: out of range"));
}

// Makes examples wait until `wanted` of them are being made together.
class Meeting {
 public:
  explicit Meeting(int wanted) : wanted_(wanted) {}
  void Come() {
    MutexLock lock(mutex_);
    ++here_;
    changed_.NotifyAll();
    while (here_ < wanted_) changed_.Wait(mutex_);
  }

 private:
  const int wanted_;
  Mutex mutex_;
  CondVar changed_;
  int here_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Ends only if four threads are in the function at once, however later stages shuffle and batch the rows.
TEST(MapThreads, MakeExamplesBesideEachOther) {
  for (const Dataset& source : {NumberedRows(4), StreamedNumbers(4)}) {
    Meeting meeting(4);
    const Dataset mapped = source.Map(
        [&meeting](Example&) {
          meeting.Come();
          return absl::OkStatus();
        },
        {.threads = 4});
    EXPECT_EQ(Flat(DrawAll(mapped.Shuffle({.seed = 1}).Batch(4))).size(), 4);
  }
}

TEST(Map, ARowIsReadOnlyWhenItIsWanted) {
  std::vector<int64_t> seen;
  const Dataset mapped = NumberedRows(100).Map([&seen](Example& example) {
    seen.push_back(example.labels.As<int64_t>()[0]);
    return absl::OkStatus();
  });
  EXPECT_THAT(DrawAll(mapped.Skip(10).Shard(2, 1).Take(2)), ElementsAre(ElementsAre(11), ElementsAre(13)));
  EXPECT_THAT(seen, ElementsAre(11, 13));
}

}  // namespace
}  // namespace muster::map_test
