// A running input pipeline allocates nothing, not even at the end of an epoch, if the same elements are passed in
// again. (A Prefetch or threaded Map before Repeat does: its threads are started anew in each epoch.)
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "muster/data/dataset/dataset.h"
#include "muster/data/testing/numbered_examples.h"
#include "tests/cluster/counted_memory.h"

namespace muster::input_memory_test {
namespace {

constexpr int kWarmUpBatches = 100;
constexpr int kBatches = 200;  // of seven per epoch

struct Pipeline {
  std::string name;
  Dataset dataset;
};

std::vector<Pipeline> Pipelines() {
  const Dataset rows = NumberedRows(103);
  const auto halve = [](Example& example) {
    for (float& value : example.Find("x")->As<float>()) value /= 2;
    return absl::OkStatus();
  };
  const Dataset own = rows.Shuffle({.seed = 1}).Shard(2, 1);
  return {
      {"Rows", own.Batch(8).Repeat()},
      {"Prefetched", own.Batch(8).Repeat().Prefetch(3)},
      {"Mapped", own.Map(halve).Batch(8).Repeat()},
      {"MappedByThreads", own.Repeat().Map(halve, {.threads = 3}).Batch(8)},
      {"Examples", own.Repeat().Batch(8)},
      {"Cached", own.Map(halve).Cache().Batch(8).Repeat()},
      {"Buffered", rows.Repeat().Shuffle({.seed = 1, .buffer_size = 20}).Shard(2, 1).Batch(8)},
      {"Interleaved", Dataset::Interleave({own, rows}, {.cycle_length = 2}).Repeat().Batch(8)},
  };
}

class InputMemoryTest : public testing::TestWithParam<Pipeline> {};
INSTANTIATE_TEST_SUITE_P(Pipelines, InputMemoryTest, testing::ValuesIn(Pipelines()),
                         [](const auto& pipeline) { return pipeline.param.name; });

TEST_P(InputMemoryTest, ABatchAllocatesNothing) {
  if (!CountsMemory()) GTEST_SKIP() << "a sanitizer has the allocator";
  auto stream = OpenOrFail(GetParam().dataset);
  // Alternate, like a program that computes on one batch while the next comes. Both have held a full batch in the end.
  std::array<Example, 2> batches;
  for (int i = 0; i < kWarmUpBatches; ++i) ASSERT_TRUE(*stream->Next(batches[i % 2]));
  NoteAllocations();
  const uint64_t before = Allocations();
  for (int i = 0; i < kBatches; ++i) stream->Next(batches[i % 2]).IgnoreError();
  const uint64_t allocations = Allocations() - before;
  const std::string noted = NotedAllocations();
  EXPECT_EQ(allocations, 0) << "of " << kBatches << " batches; the first were made at\n" << noted;
}

}  // namespace
}  // namespace muster::input_memory_test
