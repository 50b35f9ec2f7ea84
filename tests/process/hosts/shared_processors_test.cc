// Tasks of one host share the processors that the engine has given there, on every engine, and say why.
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/testing/engines.h"

namespace muster::shared_processors_test {
namespace {

using ::testing::ContainsRegex;

class SharedProcessors : public OnEveryEngine {
 protected:
  // Returns the number that follows `before` in `text`; 0 if there is none.
  static int NumberAfter(const std::string& text, const std::string& before) {
    const size_t at = text.find(before);
    int number = 0;
    if (at == std::string::npos) return 0;
    const size_t begin = at + before.size();
    EXPECT_TRUE(absl::SimpleAtoi(text.substr(begin, text.find_first_not_of("0123456789", begin) - begin), &number));
    return number;
  }
};

INSTANTIATE_TEST_SUITE_P(, SharedProcessors, EveryEngine(), EngineName);

// A ps computes with one thread, which every task that computes leaves to it.
TEST_P(SharedProcessors, ThreeTasksThatComputeAndAPsHaveNoMoreThreadsThanTheirHostHasProcessors) {
  RunOn("h1");
  Write("muster.yml",
        absl::StrCat("project: digits\ntrain:\n  framework: muster\n  muster: {distributed: {ps: 1, worker: 3}}\n",
                     "  run: >-\n    '", BinFolder(), "/digits' --csv='", SourceFolder(),
                     "/examples/data/digits.csv' --steps=5 --threads=0 --model_dir=$OUTPUT_DIR\n"));
  const std::string shown = Out({"train"});
  int threads = 0, processors = 0;
  for (const std::string task : {"1.master", "1.worker.1", "1.worker.2"}) {
    std::string said;
    for (const std::string& line : LinesOf(shown, task))
      if (line.find("computes with ") != std::string::npos) said = line;
    EXPECT_THAT(said, ContainsRegex("\\([0-9]+ processors? .*; tasks on this host: 3 computing, 1 ps\\)")) << shown;
    threads += NumberAfter(said, "computes with ");
    processors = NumberAfter(said, "(");
  }
  // Each has one at least.
  EXPECT_LE(threads, std::max(3, processors - 1)) << shown;
  EXPECT_GE(threads, 3);
}

TEST_P(SharedProcessors, ProcessesOfTorchrunOnOneHostHaveNoMoreThreadsThanItHasProcessors) {
  RunOn("h1");
  WriteExperiment("torchrun: {workers: 1, processes: 2}\nrun: echo threads=$OMP_NUM_THREADS");
  const std::string shown = Out({"train"});
  EXPECT_THAT(shown, ContainsRegex("each process computes with [0-9]+ threads? \\([0-9]+ processors? .*; processes on "
                                   "this host: 2\\)"));
  const int processors = NumberAfter(shown.substr(shown.find("each process computes with ")), "(");
  for (const std::string task : {"1.worker.1", "1.worker.2"}) {
    const auto lines = LinesOf(shown, task);
    std::string said;
    for (const std::string& line : lines)
      if (line.find("threads=") != std::string::npos) said = line;
    EXPECT_EQ(NumberAfter(said, "threads="), std::max(1, processors / 2)) << shown;
  }
}

}  // namespace
}  // namespace muster::shared_processors_test
