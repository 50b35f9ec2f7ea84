#include "muster/launch/results/metrics.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <string>

#include "muster/base/clock.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/summary/event_file_writer.h"

namespace muster::metrics_test {
namespace {

using ::testing::IsEmpty, ::testing::Pair, ::testing::UnorderedElementsAre;

class MetricsTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) const { scratch_.Write(name, text); }
  std::unique_ptr<EventFileWriter> Writer(const std::string& folder, const std::string& host) const {
    return EventFileWriter::Open(PosixFileSystem(), clock_, path_ + "/" + folder, {.host = host}).value();
  }

  const ScratchFolder scratch_;
  const std::string path_ = scratch_.path();
  SimulatedClock clock_;
};

TEST_F(MetricsTest, NothingThere) {
  EXPECT_THAT(ReadMetrics(path_), IsEmpty());
  EXPECT_THAT(ReadMetrics("/nonexistent"), IsEmpty());
}

TEST_F(MetricsTest, TheLastValueOfEachScalarByFolder) {
  auto writer = Writer(".", "host");
  ASSERT_TRUE(writer->AddScalar("loss", 2, 1).ok());
  ASSERT_TRUE(writer->AddScalar("loss", 0.5, 9).ok());
  ASSERT_TRUE(writer->AddScalar("rate", 3, 1).ok());
  ASSERT_TRUE(writer->Close().ok());
  ASSERT_TRUE(Writer("eval/first", "host")->AddScalar("accuracy", 0.75, 9).ok());
  EXPECT_THAT(ReadMetrics(path_),
              UnorderedElementsAre(Pair("loss", ResultMetric{0.5, 9}), Pair("rate", ResultMetric{3, 1}),
                                   Pair("eval/first/accuracy", ResultMetric{0.75, 9})));
}

TEST_F(MetricsTest, OfSeveralFilesTheOneThatWasWrittenLastCounts) {
  clock_.Advance(absl::Seconds(100));
  ASSERT_TRUE(Writer(".", "a")->AddScalar("loss", 1, 5).ok());
  const SimulatedClock earlier(clock_.Now() - absl::Seconds(10));
  auto writer = EventFileWriter::Open(PosixFileSystem(), earlier, path_, {.host = "b", .suffix = ".tfevents"}).value();
  ASSERT_TRUE(writer->AddScalar("loss", 2, 50).ok());
  ASSERT_TRUE(writer->Close().ok());
  // This file is the last by name but the first by time.
  std::filesystem::rename(writer->path(), path_ + "/z.tfevents");
  EXPECT_THAT(ReadMetrics(path_), UnorderedElementsAre(Pair("loss", ResultMetric{1, 5})));
}

TEST_F(MetricsTest, ObjectsOfNumbersWin) {
  ASSERT_TRUE(Writer(".", "host")->AddScalar("loss", 2, 1).ok());
  Write("metrics.jsonl", "{\"global_step\":10,\"loss\":3}\n{\"global_step\":20,\"wall_time\":5,\"loss\":1,\"a\":7}\n");
  EXPECT_THAT(ReadMetrics(path_),
              UnorderedElementsAre(Pair("loss", ResultMetric{1, 20}), Pair("a", ResultMetric{7, 20})));
  Write("metrics.json", R"({"loss": 0.25, "name": "words", "none": null, "deep": {"b": 1}})");
  EXPECT_THAT(ReadMetrics(path_),
              UnorderedElementsAre(Pair("loss", ResultMetric{0.25, -1}), Pair("a", ResultMetric{7, 20})));
  Write("eval/metrics.jsonl", "{\"step\":3,\"accuracy\":0.5}");
  EXPECT_EQ(ReadMetrics(path_)["eval/accuracy"], (ResultMetric{0.5, 3}));
}

TEST_F(MetricsTest, BrokenFilesAreReadAsFarAsTheyAreWhole) {
  Write("metrics.jsonl", "{\"loss\":3}\n{\"lo");
  Write("metrics.json", "{\"loss\": ");
  Write("events.out.tfevents.1.host", std::string(100, '\xff'));
  EXPECT_THAT(ReadMetrics(path_), UnorderedElementsAre(Pair("loss", ResultMetric{3, -1})));
  Write("metrics.jsonl", "\n\nno JSON\n[1]\n");
  EXPECT_THAT(ReadMetrics(path_), IsEmpty());
}

TEST_F(MetricsTest, LinksToFoldersAreNotFollowed) {
  Write("metrics.json", "{\"loss\": 1}");
  std::filesystem::create_directory_symlink(path_, path_ + "/self");
  EXPECT_THAT(ReadMetrics(path_), UnorderedElementsAre(Pair("loss", ResultMetric{1, -1})));
}

}  // namespace
}  // namespace muster::metrics_test
