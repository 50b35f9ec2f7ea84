#include "muster/summary/event_file_writer.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "muster/base/crc32c.h"
#include "muster/base/files/forwarding_file_system.h"
#include "muster/base/files/memory_file_system.h"
#include "muster/base/log.h"
#include "muster/base/testing/built_at.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/base/wrong_configuration.h"

namespace muster::event_file_writer_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr;

uint32_t MaskedOf(std::string_view bytes) { return MaskedCrc32c(AsBytes(bytes.data(), bytes.size())); }

// Reads the records of a file by the published framing: u64 length, its masked checksum, data, its masked checksum.
std::vector<std::string> Records(std::string_view file) {
  std::vector<std::string> records;
  while (!file.empty()) {
    uint64_t length = 0;
    uint32_t length_checksum = 0, data_checksum = 0;
    if (file.size() < 12) return {"cut in a header"};
    std::memcpy(&length, file.data(), 8);
    std::memcpy(&length_checksum, file.data() + 8, 4);
    if (length_checksum != MaskedOf(file.substr(0, 8))) return {"wrong checksum of a length"};
    if (file.size() < 16 + length) return {"cut in the data"};
    std::memcpy(&data_checksum, file.data() + 12 + length, 4);
    if (data_checksum != MaskedOf(file.substr(12, length))) return {"wrong checksum of the data"};
    records.emplace_back(file.substr(12, length));
    file.remove_prefix(16 + length);
  }
  return records;
}

class EventFileWriterTest : public ::testing::Test {
 protected:
  std::unique_ptr<EventFileWriter> Open(const std::string& directory = "logs") {
    return EventFileWriter::Open(files_, clock_, directory, {.host = "host", .suffix = ".7"}).value();
  }

  MemoryFileSystem files_;
  SimulatedClock clock_{absl::FromUnixSeconds(1700000000)};
};

TEST_F(EventFileWriterTest, TheFirstRecordIsTheVersionAndIsThereAtOnce) {
  const auto writer = Open();
  EXPECT_EQ(writer->path(), "logs/events.out.tfevents.1700000000.host.7");
  const double time = 1700000000;
  const std::string expected =
      absl::StrCat("\x09", absl::string_view(reinterpret_cast<const char*>(&time), 8), "\x1a\x0d", "brain.Event:2");
  EXPECT_THAT(Records(*files_.ReadFile(writer->path())), ElementsAre(expected));
}

TEST_F(EventFileWriterTest, NameHasTenDigitsAndTheMachineAndProcessByDefault) {
  SimulatedClock early(absl::FromUnixSeconds(42));
  const auto writer = EventFileWriter::Open(files_, early, "logs", {}).value();
  EXPECT_THAT(writer->path(), ::testing::MatchesRegex("logs/events.out.tfevents.0000000042\\..+\\.[0-9]+"));
}

TEST_F(EventFileWriterTest, ASecondFileOfTheSameSecondDoesNotOverwriteTheFirst) {
  const auto first = Open();
  ASSERT_TRUE(first->AddScalar("loss", 1, 1).ok());
  ASSERT_TRUE(first->Close().ok());
  const auto second = Open();
  EXPECT_NE(first->path(), second->path());
  EXPECT_EQ(Records(*files_.ReadFile(first->path())).size(), 2u);
}

TEST_F(EventFileWriterTest, ADirectoryHasOneWriterAtATime) {
  auto first = Open();
  const absl::Status refused = EventFileWriter::Open(files_, clock_, "logs", {}).status();
  EXPECT_TRUE(IsWrongConfiguration(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("the summary directory logs has a writer already"),
                    HasSubstr(absl::StrCat("process ", getpid(), " on ")), HasSubstr("2023-11-14 22:13:20 UTC")));
  EXPECT_NE(Open("logs/eval"), nullptr) << "a directory below is another one";
  ASSERT_TRUE(first->Close().ok());
  EXPECT_NE(first = Open(), nullptr) << "once it is closed";
  first = nullptr;
  EXPECT_NE(Open(), nullptr) << "or abandoned";
}

TEST_F(EventFileWriterTest, AFileSystemWithoutLocksIsTakenAtTheCallersWord) {
  class WithoutLocks final : public ForwardingFileSystem {
   public:
    using ForwardingFileSystem::ForwardingFileSystem;
    absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path, const std::string&) override {
      return absl::UnimplementedError(path);
    }
  };
  WithoutLocks files(files_);
  const auto first = EventFileWriter::Open(files, clock_, "logs", {});
  EXPECT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(EventFileWriter::Open(files, clock_, "logs", {}).ok());
}

TEST_F(EventFileWriterTest, AGraphIsAnEventOfItsOwn) {
  const auto writer = Open();
  ASSERT_TRUE(writer->AddGraph("graph", 0).ok());
  const double time = 1700000000;
  const std::string expected = absl::StrCat("\x09", absl::string_view(reinterpret_cast<const char*>(&time), 8),
                                            absl::string_view("\x10\x00", 2), "\x22\x05", "graph");
  EXPECT_EQ(Records(*files_.ReadFile(writer->path())).back(), expected);
}

TEST_F(EventFileWriterTest, AnEmptySummaryIsNoEvent) {
  const auto writer = Open();
  ASSERT_TRUE(writer->AddSummary("", 1).ok());
  EXPECT_EQ(Records(*files_.ReadFile(writer->path())).size(), 1u);
}

TEST_F(EventFileWriterTest, AScalarIsEncodedAsTensorFlowDoesIt) {
  const auto writer = Open();
  clock_.Advance(absl::Seconds(1));
  ASSERT_TRUE(writer->AddScalar("loss", 0.5f, 300).ok());
  const double time = 1700000001;
  // wall_time; step 300; summary { value { tag: "loss" simple_value: 0.5 } }
  const std::string expected =
      absl::StrCat("\x09", absl::string_view(reinterpret_cast<const char*>(&time), 8), "\x10\xac\x02", "\x2a\x0d",
                   "\x0a\x0b", "\x0a\x04loss", absl::string_view("\x15\x00\x00\x00\x3f", 5));
  const auto records = Records(*files_.ReadFile(writer->path()));
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[1], expected);
}

// What follows a cut record can't be read, so another file is begun.
TEST_F(EventFileWriterTest, AFullDiskIsSaidAndAnotherFileIsBegunOnceThereIsRoom) {
  const auto writer = Open();
  const std::string first = writer->path();
  ASSERT_TRUE(writer->AddScalar("a", 1, 1).ok());
  files_.FillAfter(10);
  ::testing::internal::CaptureStderr();
  SetUpLog("");
  EXPECT_TRUE(writer->AddScalar("lost", 1, 2).ok());
  EXPECT_TRUE(writer->AddScalar("lost", 1, 3).ok());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("no summaries are written to logs: "), HasSubstr("no space left on device"),
                    HasSubstr("a new file is begun in 5s")));
  clock_.Advance(absl::Seconds(5));
  ::testing::internal::CaptureStderr();
  SetUpLog("");
  EXPECT_TRUE(writer->AddScalar("lost", 1, 4).ok()) << "there is still no room";
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("a new file is begun in 10s"));
  files_.Unfill();
  clock_.Advance(absl::Seconds(9));
  EXPECT_TRUE(writer->AddScalar("lost", 1, 5).ok()) << "it isn't time yet";
  EXPECT_EQ(writer->Flush(), absl::OkStatus());
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(writer->AddScalar("b", 1, 6).ok());
  EXPECT_NE(writer->path(), first);
  EXPECT_EQ(Records(*files_.ReadFile(writer->path())).size(), 2u) << "the version and one event";
  EXPECT_TRUE(writer->Close().ok());
}

TEST_F(EventFileWriterTest, ADiskThatIsFullWhenItIsOpenedIsNoError) {
  files_.FillAfter(0);
  const auto writer = Open();
  EXPECT_TRUE(writer->AddScalar("lost", 1, 1).ok());
  files_.Unfill();
  clock_.Advance(absl::Seconds(5));
  EXPECT_TRUE(writer->AddScalar("a", 1, 2).ok());
  EXPECT_EQ(Records(*files_.ReadFile(writer->path())).size(), 2u);
  EXPECT_TRUE(IsWrongConfiguration(EventFileWriter::Open(files_, clock_, "logs", {}).status())) << "it has the lock";
}

TEST_F(EventFileWriterTest, ADirectoryThatWasDeletedIsMadeAgainWithANewFile) {
  const auto writer = Open();
  ASSERT_TRUE(writer->AddScalar("a", 1, 1).ok());
  ASSERT_TRUE(files_.RemoveTree("logs").ok());
  clock_.Advance(absl::Seconds(5));
  ::testing::internal::CaptureStderr();
  SetUpLog("");
  ASSERT_TRUE(writer->AddScalar("b", 1, 2).ok());
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      HasSubstr("logs/events.out.tfevents.1700000000.host.7 was deleted: summaries go on in a new file of logs"));
  EXPECT_EQ(writer->path(), "logs/events.out.tfevents.1700000005.host.7");
  EXPECT_EQ(Records(*files_.ReadFile(writer->path())).size(), 2u);
  EXPECT_TRUE(IsWrongConfiguration(EventFileWriter::Open(files_, clock_, "logs", {}).status())) << "it has the lock";
}

TEST_F(EventFileWriterTest, ReadOnlyDiskIsReportedWhenOpening) {
  files_.SetReadOnly(true);
  EXPECT_TRUE(absl::IsPermissionDenied(EventFileWriter::Open(files_, clock_, "logs", {}).status()));
}

TEST_F(EventFileWriterTest, AfterCloseNothingCanBeAdded) {
  const auto writer = Open();
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_TRUE(writer->Close().ok());
  const absl::Status status = writer->AddScalar("a", 1, 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("logs/events.out.tfevents.1700000000.host.7 is closed"));
  EXPECT_TRUE(absl::IsFailedPrecondition(writer->Flush()));
}

// Ignores Append and counts Flush.
class CountingFile final : public WritableFile {
 public:
  explicit CountingFile(int& flushes) : flushes_(flushes) {}
  absl::Status Append(ByteSpan) override { return absl::OkStatus(); }
  absl::Status Flush() override {
    ++flushes_;
    return absl::OkStatus();
  }
  absl::Status Sync() override { return absl::OkStatus(); }
  absl::Status Close() override { return absl::OkStatus(); }

 private:
  int& flushes_;
};

class CountingFileSystem final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override {
    opened_ = path;
    return std::make_unique<CountingFile>(flushes_);
  }
  bool Exists(const std::string& path) override { return path == opened_; }
  int flushes() const { return flushes_; }

 private:
  int flushes_ = 0;
  std::string opened_;
};

TEST(EventFileWriterFlushTest, FlushesTheVersionAndThenWheneverTheIntervalHasPassed) {
  MemoryFileSystem memory;
  CountingFileSystem files(memory);
  SimulatedClock clock;
  auto writer = EventFileWriter::Open(files, clock, "logs", {.flush_interval = absl::Seconds(10)}).value();
  EXPECT_EQ(files.flushes(), 1);
  ASSERT_TRUE(writer->AddScalar("a", 1, 1).ok());
  clock.Advance(absl::Seconds(9));
  ASSERT_TRUE(writer->AddScalar("a", 1, 2).ok());
  EXPECT_EQ(files.flushes(), 1);
  clock.Advance(absl::Seconds(1));
  ASSERT_TRUE(writer->AddScalar("a", 1, 3).ok());
  EXPECT_EQ(files.flushes(), 2);
  ASSERT_TRUE(writer->AddScalar("a", 1, 4).ok());
  EXPECT_EQ(files.flushes(), 2);
  ASSERT_TRUE(writer->Flush().ok());
  EXPECT_EQ(files.flushes(), 3);
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_EQ(files.flushes(), 4);
}

TEST(EventFileTensorBoardTest, TensorBoardReadsWhatWeWrite) {
  const std::string python = SourceFolder() + "/.venv/bin/python";
  if (std::system(absl::StrCat(python, " -c 'import tensorboard' 2>/dev/null").c_str()) != 0)
    GTEST_SKIP() << python << " doesn't have tensorboard: './dev setup' installs it";
  const ScratchFolder scratch;
  FileSystem& files = PosixFileSystem();
  SimulatedClock clock(absl::FromUnixMillis(1700000000250));
  auto writer = EventFileWriter::Open(files, clock, scratch / "logs", {}).value();
  EventFileWriter& events = *writer;
  ASSERT_TRUE(events.AddSessionLog(SessionStatus::kStart, 0).ok());
  const ScalarSummary both[] = {{"loss", 0.25f}, {"global_step/sec", 12.5f}};
  ASSERT_TRUE(events.AddScalars(both, 100).ok());
  clock.Advance(absl::Seconds(2));
  ASSERT_TRUE(events.AddScalar("loss", std::numeric_limits<float>::quiet_NaN(), int64_t{1} << 40).ok());
  ASSERT_TRUE(events.AddSessionLog(SessionStatus::kCheckpoint, 200, "d/model.ckpt-200", "saved").ok());
  ASSERT_TRUE(events.AddSessionLog(SessionStatus::kStop, 300).ok());
  ASSERT_TRUE(events.Flush().ok());
  const std::string script = R"(
import math, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.compat.proto import event_pb2
events = list(EventFileLoader(sys.argv[2]).Load())
assert [e.WhichOneof('what') for e in events] == ['file_version', 'session_log', 'summary', 'summary', 'session_log', 'session_log']
assert events[0].file_version == 'brain.Event:2', events[0]
assert [e.wall_time for e in events] == [1700000000.25] * 3 + [1700000002.25] * 3, [e.wall_time for e in events]
S = event_pb2.SessionLog
assert [e.session_log.status for e in events if e.HasField('session_log')] == [S.START, S.CHECKPOINT, S.STOP]
assert events[4].session_log.checkpoint_path == 'd/model.ckpt-200' and events[4].session_log.msg == 'saved'
assert events[4].step == 200
a = EventAccumulator(sys.argv[1])
a.Reload()
assert sorted(a.Tags()['scalars']) == ['global_step/sec', 'loss'], a.Tags()
assert [(s.step, s.value) for s in a.Scalars('global_step/sec')] == [(100, 12.5)]
loss = a.Scalars('loss')
assert [s.step for s in loss] == [100, 2**40] and loss[0].value == 0.25 and math.isnan(loss[1].value), loss
)";
  const std::string file = scratch / "script.py";
  ASSERT_TRUE(WriteFileAtomically(files, file, AsBytes(script.data(), script.size())).ok());
  EXPECT_EQ(std::system(absl::StrCat(python, " ", file, " ", scratch / "logs", " ", events.path()).c_str()), 0);
  EXPECT_TRUE(events.Close().ok());
}

}  // namespace
}  // namespace muster::event_file_writer_test
