#include "muster/launch/task_log/task_log.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/task_log/log_reader.h"

namespace muster::task_log_test {
namespace {

using ::testing::ElementsAre;

const absl::Time kWhen = absl::FromUnixMicros(1769844226123456);  // 2026-01-31T07:23:46.123456Z
constexpr char kHead[] = "2026-01-31T07:23:46.123456Z o ";

// Takes `room` bytes and then fails with `error` until there is room again.
class FullDisk final : public LogDisk {
 public:
  int Open(const std::string& path) override { return openable ? PosixLogDisk().Open(path) : -error; }
  int64_t Write(int fd, std::string_view bytes) override {
    if (room == 0) return -error;
    const int64_t written = PosixLogDisk().Write(fd, bytes.substr(0, room));
    room -= written;
    return written;
  }

  bool openable = true;
  int64_t room = 0;
  int error = ENOSPC;
};

constexpr int64_t kEnough = int64_t{1} << 40;

class TaskLogTest : public ::testing::Test {
 protected:
  struct Line {
    absl::Time when;
    LogKind kind;
    std::string text;

    bool operator==(const Line&) const = default;
  };

  std::vector<Line> Lines() const {
    std::vector<Line> lines;
    LogReader reader({{logs_, ""}}, {});
    EXPECT_TRUE(reader
                    .ReadMore([&](const LogLineRecord& line) {
                      EXPECT_EQ(line.task, "worker.1");
                      lines.push_back({line.when, line.kind, std::string(line.text)});
                    })
                    .ok());
    return lines;
  }
  std::vector<std::string> Texts() const {
    std::vector<std::string> texts;
    for (const Line& line : Lines()) texts.push_back(line.text);
    return texts;
  }
  std::vector<std::string> Files() const {
    auto names = PosixFileSystem().ListDirectory(folder_);
    return names.ok() ? *names : std::vector<std::string>();
  }
  std::string File(const std::string& name) const {
    auto text = PosixFileSystem().ReadFile(JoinPath(folder_, name));
    return text.ok() ? *text : text.status().ToString();
  }
  // Leaves a file as a killed writer would.
  void Leave(const std::string& text) const { scratch_.Write("worker.1/000001.log", text); }

  const ScratchFolder scratch_;
  const std::string logs_ = scratch_.path();
  const std::string folder_ = logs_ + "/worker.1";
};

TEST_F(TaskLogTest, LinesAreAsDocumented) {
  TaskLog log({.folder = folder_});
  log.Add(kWhen, LogKind::kStdout, "step 1");
  log.Add(kWhen + absl::Microseconds(876543), LogKind::kStderr, "");
  log.Add(kWhen + absl::Microseconds(876544), LogKind::kState, "RUNNING");
  log.Add(absl::InfinitePast(), LogKind::kMuster, "a\rb");
  log.Add(absl::InfiniteFuture(), LogKind::kStdout, "c");
  EXPECT_EQ(Files(), std::vector<std::string>());
  log.Flush();
  EXPECT_THAT(Files(), ElementsAre("000001.log"));
  EXPECT_EQ(File("000001.log"),
            "2026-01-31T07:23:46.123456Z o step 1\n"
            "2026-01-31T07:23:46.999999Z e \n"
            "2026-01-31T07:23:47.000000Z s RUNNING\n"
            "1970-01-01T00:00:00.000000Z m a\rb\n"
            "9999-12-31T23:59:59.999999Z o c\n");
}

TEST_F(TaskLogTest, WhatABinaryProgramWritesComesBackAsItWas) {
  std::minstd_rand random(7);
  std::vector<Line> written;
  constexpr LogKind kKinds[] = {LogKind::kStdout, LogKind::kStderr, LogKind::kState, LogKind::kMuster};
  {
    TaskLog log({.folder = folder_, .file_bytes = 10'000});
    for (int i = 0; i < 2000; ++i) {
      std::string text(random() % 300, '\0');
      for (char& c : text) c = static_cast<char>(random());
      std::replace(text.begin(), text.end(), '\n', '\0');
      written.push_back({kWhen + absl::Milliseconds(7 * i), kKinds[random() % 4], text});
      log.Add(written.back().when, written.back().kind, text);
    }
  }
  EXPECT_GT(Files().size(), 30);
  EXPECT_TRUE(Lines() == written);
}

TEST_F(TaskLogTest, LongLinesAreCutBetweenCharacters) {
  TaskLog log({.folder = folder_, .line_bytes = 8});
  log.Add(kWhen, LogKind::kStdout, "12345678");
  log.Add(kWhen, LogKind::kStdout, "1234567812345678x");
  log.Add(kWhen, LogKind::kStdout, "1234567äöü");
  log.Add(kWhen, LogKind::kStdout, "12345🚀");
  log.Add(kWhen, LogKind::kStdout, "\x80\x80\x80\x80\x80\x80\x80\x80\x80");
  log.Flush();
  EXPECT_THAT(Texts(), ElementsAre("12345678", "12345678", "12345678", "x", "1234567", "äöü", "12345", "🚀",
                                   "\x80\x80\x80\x80\x80\x80\x80\x80", "\x80"));
}

TEST_F(TaskLogTest, NoLineIsLongerThanReadersTake) {
  TaskLog log({.folder = folder_, .line_bytes = kEnough});
  const std::string text(3 << 20, 'x');
  log.Add(kWhen, LogKind::kStdout, text);
  log.Flush();
  std::string all;
  for (const Line& line : Lines()) {
    EXPECT_EQ(line.kind, LogKind::kStdout);
    all += line.text;
  }
  EXPECT_TRUE(all == text) << all.size();
}

TEST_F(TaskLogTest, ATextOfSeveralLinesIsThat) {
  TaskLog log({.folder = folder_});
  log.Add(kWhen, LogKind::kMuster, "one\n\nthree");
  log.Flush();
  EXPECT_THAT(Texts(), ElementsAre("one", "", "three"));
}

TEST_F(TaskLogTest, TheOldestFilesAreRemovedAndItNeverHoldsMore) {
  TaskLog log({.folder = folder_, .most_bytes = 4000, .file_bytes = 1000});
  for (int i = 0; i < 1000; ++i) {
    log.Add(kWhen, LogKind::kStdout, absl::StrCat("line ", i, std::string(i % 60, '.')));
    log.Flush();
    uint64_t bytes = 0;
    for (const std::string& file : Files()) {
      const uint64_t size = *PosixFileSystem().FileSize(JoinPath(folder_, file));
      EXPECT_LE(size, 1000);
      bytes += size;
    }
    ASSERT_LE(bytes, 4000);
  }
  const std::vector<Line> lines = Lines();
  ASSERT_GT(lines.size(), 30);
  EXPECT_EQ(lines[0].text, "older lines were removed here, to keep the log within its size");
  EXPECT_EQ(lines[0].kind, LogKind::kMuster);
  for (size_t i = 1; i < lines.size(); ++i)
    EXPECT_TRUE(absl::StartsWith(lines[i].text, absl::StrCat("line ", 1000 - lines.size() + i))) << lines[i].text;
}

TEST_F(TaskLogTest, AnotherAttemptGoesOnWhereTheLastEnded) {
  for (int attempt = 0; attempt < 3; ++attempt) {
    TaskLog log({.folder = folder_, .file_bytes = 100});
    log.Add(kWhen, LogKind::kStdout, absl::StrCat("attempt ", attempt));
    log.Add(kWhen, LogKind::kStdout, "and on");
  }
  EXPECT_THAT(Texts(), ElementsAre("attempt 0", "and on", "attempt 1", "and on", "attempt 2", "and on"));
  EXPECT_THAT(Files(), ElementsAre("000001.log", "000002.log", "000003.log"));
}

TEST_F(TaskLogTest, ALineThatAKilledWriterBeganEndsThere) {
  Leave(absl::StrCat(kHead, "whole\n", kHead, "tor"));
  TaskLog log({.folder = folder_});
  log.Add(kWhen, LogKind::kStdout, "next");
  log.Flush();
  EXPECT_EQ(File("000001.log"), absl::StrCat(kHead, "whole\n", kHead, "tor\n", kHead, "next\n"));
  EXPECT_THAT(Texts(), ElementsAre("whole", "tor", "next"));
}

TEST_F(TaskLogTest, ATornHeadHasNoTextAndIsPassedOver) {
  for (size_t bytes = 1; bytes < kLogLineHead; ++bytes) {
    Leave(absl::StrCat(kHead, "whole\n", std::string(kHead).substr(0, bytes)));
    TaskLog log({.folder = folder_});
    log.Add(kWhen, LogKind::kStdout, "next");
    log.Flush();
    EXPECT_THAT(Texts(), ElementsAre("whole", "next"));
  }
}

TEST_F(TaskLogTest, AFullDiskLosesNothingThatFitsIntoMemory) {
  FullDisk disk;
  TaskLog log({.folder = folder_}, disk);
  disk.room = 100;
  std::vector<std::string> written;
  for (int i = 0; i < 100; ++i) {
    written.push_back(absl::StrCat("line ", i));
    log.Add(kWhen, LogKind::kStdout, written.back());
    log.Flush();
  }
  EXPECT_EQ(File("000001.log").size(), 100);
  disk.room = kEnough;
  log.Flush();
  EXPECT_EQ(Texts(), written);
  EXPECT_EQ(log.lost_lines(), 0);
}

TEST_F(TaskLogTest, WhatIsLostIsCountedAndSaidWhereItIsMissing) {
  FullDisk disk;
  TaskLog log({.folder = folder_}, disk);
  const std::string text(10'000, 'x');
  int64_t added = 0;
  for (; log.lost_lines() < 12; ++added) log.Add(kWhen, LogKind::kStdout, text);
  disk.room = 15'000;  // a line and a half, so that later losses occur at another place
  log.Add(kWhen, LogKind::kStdout, "between");
  disk.room = 0;
  while (log.lost_lines() < 13) log.Add(kWhen, LogKind::kStdout, text);
  disk.room = kEnough;
  log.Add(kWhen, LogKind::kStdout, "after");
  log.Flush();

  std::vector<std::string> texts = Texts();
  EXPECT_THAT(std::vector(texts.begin(), texts.begin() + (added - 12)), ::testing::Each(text));
  texts.erase(texts.begin(), texts.begin() + (added - 12));
  std::erase(texts, text);
  EXPECT_THAT(texts, ElementsAre("12 lines are missing here: no space left on device", "between",
                                 "1 line is missing here: no space left on device", "after"));
}

TEST_F(TaskLogTest, WhatIsLostIsSaidThoughNoLineFollows) {
  FullDisk disk;
  disk.error = EIO;
  TaskLog log({.folder = folder_}, disk);
  while (log.lost_lines() < 2) log.Add(kWhen, LogKind::kStdout, std::string(50'000, 'x'));
  disk.room = kEnough;
  log.Flush();
  EXPECT_EQ(Texts().back(), "2 lines are missing here: input/output error");
}

TEST_F(TaskLogTest, AFileThatCannotBeMadeIsTriedAgain) {
  FullDisk disk;
  disk.room = kEnough;
  TaskLog log({.folder = folder_, .file_bytes = 50}, disk);
  log.Add(kWhen, LogKind::kStdout, "one");
  log.Flush();
  disk.openable = false;
  log.Add(kWhen, LogKind::kStdout, "two");  // would go to the second file
  log.Flush();
  EXPECT_THAT(Files(), ElementsAre("000001.log"));
  disk.openable = true;
  log.Add(kWhen, LogKind::kStdout, "three");
  log.Flush();
  EXPECT_THAT(Texts(), ElementsAre("one", "two", "three"));
}

TEST_F(TaskLogTest, AFolderThatCannotBeMadeStopsNobody) {
  TaskLog log({.folder = "/dev/null/logs/worker.1"});
  const std::string text(60'000, 'x');
  for (int i = 0; i < 100; ++i) log.Add(kWhen, LogKind::kStdout, text);
  log.Flush();
  EXPECT_GT(log.lost_lines(), 0);
  EXPECT_LT(log.lost_lines(), 100);
}

}  // namespace
}  // namespace muster::task_log_test
