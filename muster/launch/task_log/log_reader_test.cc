#include "muster/launch/task_log/log_reader.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/task_log/live_state.h"
#include "muster/launch/task_log/task_log.h"

namespace muster::log_reader_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;

constexpr char kRemoved[] = "older lines were removed here, to keep the log within its size";

absl::Time At(int64_t seconds) { return absl::FromUnixSeconds(1'769'844'226 + seconds); }

class LogReaderTest : public ::testing::Test {
 protected:
  std::string Folder(const std::string& task) const { return JoinPath(logs_, task); }
  // Writes one line, visible at once.
  void Write(const std::string& task, int64_t second, const std::string& text) const {
    TaskLog({.folder = Folder(task)}).Add(At(second), LogKind::kStdout, text);
  }
  void WriteFile(const std::string& task, const std::string& file, const std::string& text) const {
    scratch_.Write(JoinPath(task, file), text);
  }

  const ScratchFolder scratch_;
  const std::string logs_ = scratch_.path();
};

// Returns the new lines as "task: text".
std::vector<std::string> More(LogReader& reader) {
  std::vector<std::string> lines;
  const absl::Status status = reader.ReadMore([&lines](const LogLineRecord& line) {
    lines.push_back(absl::StrCat(std::string(line.task), ": ", std::string(line.text)));
  });
  EXPECT_TRUE(status.ok()) << status;
  return lines;
}

// Fails after a time that only a lost wake-up can explain.
bool Woken(const LogReader& reader) {
  pollfd wake = {reader.wake_fd(), POLLIN, 0};
  return poll(&wake, 1, 60'000) == 1;
}

bool WouldWake(const LogReader& reader) {
  pollfd wake = {reader.wake_fd(), POLLIN, 0};
  return poll(&wake, 1, 0) == 1;
}

// Another host's writes wake nobody there, so each call looks into all folders.
TEST_F(LogReaderTest, OnANetworkFileSystemItLooksByItself) {
  scratch_.Write("worker.1/note", "");
  LogReader reader({{logs_, ""}}, {}, [](const std::string& /*folder*/) { return false; });
  EXPECT_THAT(More(reader), IsEmpty());
  EXPECT_EQ(reader.wake_fd(), -1);
  Write("worker.1", 0, "a");
  EXPECT_THAT(More(reader), ElementsAre("worker.1: a"));
  Write("ps.1", 1, "b");
  Write("worker.1", 2, "c");
  EXPECT_THAT(More(reader), ElementsAre("ps.1: b", "worker.1: c"));
  for (const char* live : {"2026-01-31T07:23:46.000001Z e 1%\n", "2026-01-31T07:23:47.000001Z e 2%\n"}) {
    WriteLiveState(Folder("worker.1"), live);
    int states = 0;
    reader.ReadLive([&states](const LogLineRecord& /*line*/) { ++states; });
    EXPECT_EQ(states, 1) << live;
  }
  EXPECT_EQ(reader.wake_fd(), -1);
}

TEST_F(LogReaderTest, TasksAreMergedByTime) {
  Write("ps.1", 1, "b");
  Write("ps.1", 4, "e");
  Write("worker.1", 0, "a");
  Write("worker.1", 2, "c");
  Write("worker.1", 5, "f");
  Write("worker.2", 3, "d");
  Write("worker.2", 6, "g");
  LogReader reader({{logs_, ""}}, {});
  EXPECT_THAT(More(reader), ElementsAre("worker.1: a", "ps.1: b", "worker.1: c", "worker.2: d", "ps.1: e",
                                        "worker.1: f", "worker.2: g"));
  EXPECT_THAT(More(reader), IsEmpty());
}

TEST_F(LogReaderTest, ATasksOrderIsKeptThoughItsTimesGoBack) {
  Write("a", 5, "1");
  Write("a", 2, "2");
  Write("a", 9, "3");
  Write("b", 4, "x");
  Write("b", 8, "y");
  LogReader reader({{logs_, ""}}, {});
  EXPECT_THAT(More(reader), ElementsAre("b: x", "a: 1", "a: 2", "b: y", "a: 3"));
}

TEST_F(LogReaderTest, RunsHavePrefixesAndOnlyWhatIsWantedIsRead) {
  Write("1/worker.1", 1, "a");
  Write("1/worker.2", 2, "b");
  Write("2/worker.1", 3, "c");
  LogReader all({{Folder("1"), "1."}, {Folder("2"), "2."}}, {});
  EXPECT_THAT(More(all), ElementsAre("1.worker.1: a", "1.worker.2: b", "2.worker.1: c"));
  LogReader some({{Folder("1"), "1."}, {Folder("2"), "2."}}, {"worker.1"});
  EXPECT_THAT(More(some), ElementsAre("1.worker.1: a", "2.worker.1: c"));
}

TEST_F(LogReaderTest, WhatStandsInALineThatIsOverwrittenWakesAndIsTakenOnce) {
  const auto live = [](LogReader& reader) {
    std::vector<std::string> lines;
    reader.ReadLive([&lines](const LogLineRecord& line) {
      lines.push_back(absl::StrCat(std::string(line.task), ": ", std::string(line.text)));
    });
    return lines;
  };
  Write("1/worker.1", 0, "a");
  WriteLiveState(Folder("1/worker.1"), "2026-01-31T07:23:46.000001Z e 1%\n");
  LogReader reader({{Folder("1"), "1."}}, {});
  EXPECT_THAT(More(reader), ElementsAre("1.worker.1: a"));
  EXPECT_THAT(live(reader), ElementsAre("1.worker.1: 1%"));
  EXPECT_THAT(More(reader), IsEmpty());
  EXPECT_FALSE(WouldWake(reader));
  WriteLiveState(Folder("1/worker.1"), "2026-01-31T07:23:47.000001Z e 2%\n");
  EXPECT_TRUE(Woken(reader));
  EXPECT_THAT(More(reader), IsEmpty());
  EXPECT_THAT(live(reader), ElementsAre("1.worker.1: 2%"));
  EXPECT_THAT(live(reader), IsEmpty());
  WriteLiveState(Folder("1/worker.1"), "");
  EXPECT_THAT(More(reader), IsEmpty());
  EXPECT_THAT(live(reader), IsEmpty());
}

TEST_F(LogReaderTest, FoldersAndTasksAndFilesThatComeAreFoundAndWake) {
  LogReader reader({{Folder("4/logs"), ""}}, {});
  EXPECT_THAT(More(reader), IsEmpty());
  EXPECT_FALSE(WouldWake(reader));
  ASSERT_TRUE(PosixFileSystem().CreateDirectory(Folder("4")).ok());
  EXPECT_TRUE(Woken(reader));
  EXPECT_THAT(More(reader), IsEmpty());
  ASSERT_TRUE(PosixFileSystem().CreateDirectory(Folder("4/logs")).ok());
  EXPECT_TRUE(Woken(reader));
  EXPECT_THAT(More(reader), IsEmpty());
  EXPECT_FALSE(WouldWake(reader));
  Write("4/logs/worker.1", 1, "a");
  EXPECT_TRUE(Woken(reader));
  EXPECT_THAT(More(reader), ElementsAre("worker.1: a"));
  Write("4/logs/worker.1", 2, "b");
  EXPECT_TRUE(Woken(reader));
  EXPECT_THAT(More(reader), ElementsAre("worker.1: b"));
  Write("4/logs/worker.2", 3, "c");
  EXPECT_TRUE(Woken(reader));
  EXPECT_THAT(More(reader), ElementsAre("worker.2: c"));
  EXPECT_FALSE(WouldWake(reader));
}

TEST_F(LogReaderTest, WhatIsNoTaskIsLeftAlone) {
  Write("worker.1", 1, "a");
  WriteFile("", "note.txt", "not a folder");
  WriteFile("worker.1", "notes", "not a log");
  WriteFile("worker.1", "2.log", "no name of ours");
  LogReader reader({{logs_, ""}}, {});
  EXPECT_THAT(More(reader), ElementsAre("worker.1: a"));
  EXPECT_GE(reader.wake_fd(), 0);
}

TEST_F(LogReaderTest, WhatIsRemovedWhileItIsReadIsSaid) {
  TaskLog log({.folder = Folder("a"), .most_bytes = 800, .file_bytes = 200});
  const auto add = [&log](int i) {
    log.Add(At(i), LogKind::kStdout, absl::StrCat(i));
    log.Flush();
  };
  add(0);
  LogReader reader({{logs_, ""}}, {});
  EXPECT_THAT(More(reader), ElementsAre("a: 0"));
  for (int i = 1; i < 100; ++i) add(i);
  const std::vector<std::string> lines = More(reader);
  ASSERT_GT(lines.size(), 10);
  EXPECT_EQ(lines[0], absl::StrCat("a: ", kRemoved));
  for (size_t i = 1; i < lines.size(); ++i) EXPECT_EQ(lines[i], absl::StrCat("a: ", 100 - lines.size() + i));
}

TEST_F(LogReaderTest, AnUnfinishedLineIsReadWhenItIsWhole) {
  const std::string head = "2026-01-31T07:23:46.000000Z o ";
  WriteFile("a", "000001.log", head + "one\n" + head + "tw");
  LogReader reader({{logs_, ""}}, {});
  EXPECT_THAT(More(reader), ElementsAre("a: one"));
  WriteFile("a", "000001.log", head + "one\n" + head + "two\n");
  EXPECT_THAT(More(reader), ElementsAre("a: two"));
}

TEST_F(LogReaderTest, PauseKeepsTheRestForTheNextCall) {
  for (int i = 0; i < 3; ++i) {
    Write("a", i, absl::StrCat(i));
    Write("b", i, absl::StrCat(i));
  }
  LogReader reader({{logs_, ""}}, {});
  std::vector<std::string> lines;
  for (int i = 0; i < 7; ++i) {
    EXPECT_TRUE(reader
                    .ReadMore([&](const LogLineRecord& line) {
                      lines.push_back(absl::StrCat(std::string(line.task), std::string(line.text)));
                      reader.Pause();
                    })
                    .ok());
  }
  EXPECT_THAT(lines, ElementsAre("a0", "b0", "a1", "b1", "a2", "b2"));
}

TEST_F(LogReaderTest, TheLastLinesAreFoundAcrossFiles) {
  {
    TaskLog log({.folder = Folder("a"), .file_bytes = 100});  // three lines a file
    for (int i = 0; i < 10; ++i) log.Add(At(i), LogKind::kStdout, absl::StrCat(i));
  }
  Write("b", 0, "only");
  for (int last = 0; last < 14; ++last) {
    LogReader reader({{logs_, ""}}, {"a"});
    reader.StartAtLast(last);
    std::vector<std::string> wanted;
    for (int i = std::max(0, 10 - last); i < 10; ++i) wanted.push_back(absl::StrCat("a: ", i));
    EXPECT_EQ(More(reader), wanted) << last;
    EXPECT_THAT(More(reader), IsEmpty());
  }
  LogReader reader({{logs_, ""}}, {});
  reader.StartAtLast(2);
  EXPECT_THAT(More(reader), ElementsAre("b: only", "a: 8", "a: 9"));
  Write("a", 20, "new");
  Write("c", 21, "first");  // a new task: all of it
  Write("c", 22, "second");
  Write("c", 23, "third");
  EXPECT_THAT(More(reader), ElementsAre("a: new", "c: first", "c: second", "c: third"));
}

TEST_F(LogReaderTest, TheLastLinesOfTornFiles) {
  const std::string head = "2026-01-31T07:23:46.000000Z o ";
  WriteFile("a", "000001.log", head + "1\n" + head + "2");  // killed there, and continued in another file
  WriteFile("a", "000002.log", "");
  WriteFile("a", "000003.log", head + "3\n" + head + "not yet whole");
  const std::vector<std::string> all = {"a: 1", "a: 2", "a: 3"};
  for (int last = 0; last < 5; ++last) {
    LogReader reader({{logs_, ""}}, {});
    reader.StartAtLast(last);
    EXPECT_EQ(More(reader), std::vector(all.end() - std::min(last, 3), all.end())) << last;
  }
}

TEST_F(LogReaderTest, LinesLongerThanAPieceAreWhole) {
  const std::string text(900'000, 'x');
  {
    TaskLog log({.folder = Folder("a"), .line_bytes = 1 << 20});
    log.Add(At(0), LogKind::kStdout, text);
    log.Add(At(1), LogKind::kStdout, "short");
  }
  LogReader reader({{logs_, ""}}, {});
  const std::vector<std::string> lines = More(reader);
  ASSERT_EQ(lines.size(), 2);
  EXPECT_TRUE(lines[0] == "a: " + text);
  EXPECT_EQ(lines[1], "a: short");
}

TEST_F(LogReaderTest, DamageIsPassedOverAndSaid) {
  const std::string head = "2026-01-31T07:23:46.000000Z o ";
  const std::string zeros(100, '\0');
  WriteFile("a", "000001.log", head + "1\n" + zeros + "\n" + "garbage\n" + head + "2\n2026-01-3\n\n" + head + "3\n");
  WriteFile("a", "000002.log", std::string(5 << 20, 'x') + "\n" + head + "4\n" + "end of it\n");
  LogReader reader({{logs_, ""}}, {});
  EXPECT_THAT(More(reader), ElementsAre("a: 1", "a: 109 bytes before this are no log lines, but damage", "a: 2", "a: 3",
                                        "a: 5242881 bytes before this are no log lines, but damage", "a: 4",
                                        "a: 10 bytes before this are no log lines, but damage"));
  EXPECT_THAT(More(reader), IsEmpty());
}

TEST_F(LogReaderTest, ALogThatCannotBeReadDoesNotHideTheOthers) {
  Write("b", 1, "x");
  ASSERT_TRUE(PosixFileSystem().CreateDirectory(Folder("a/000001.log")).ok());
  LogReader reader({{logs_, ""}}, {});
  std::vector<std::string> lines;
  const auto take = [&lines](const LogLineRecord& line) { lines.emplace_back(line.text); };
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT(std::string(reader.ReadMore(take).message()), HasSubstr(Folder("a/000001.log")));
  EXPECT_THAT(lines, ElementsAre("x"));
}

TEST_F(LogReaderTest, ManyTasks) {
  for (int i = 0; i < 300; ++i) Write(absl::StrCat("worker.", i), i, absl::StrCat(i));
  LogReader reader({{logs_, ""}}, {});
  const std::vector<std::string> lines = More(reader);
  ASSERT_EQ(lines.size(), 300);
  for (size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(lines[i], absl::StrCat("worker.", i, ": ", i));
}

// A process that writes; killed at the latest when the test ends.
class Writer {
 public:
  template <typename F>
  explicit Writer(const F& write) : pid_(fork()) {
    if (pid_ == 0) {
      write();
      _exit(0);
    }
  }
  ~Writer() {
    if (pid_ > 0) Kill();
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void Kill() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_;
};

TEST_F(LogReaderTest, AFollowerSeesEveryLineOnceAndInOrderWhileItIsWrittenAndRotated) {
  constexpr int kLines = 100'000;
  const Writer writer([this] {
    TaskLog log({.folder = Folder("a"), .most_bytes = 1 << 30, .file_bytes = 64 << 10});
    for (int i = 0; i < kLines; ++i) {
      log.Add(At(0), LogKind::kStdout, absl::StrCat(i, std::string(i % 50, '.')));
      if (i % 100 == 99) log.Flush();
    }
  });
  LogReader reader({{logs_, ""}}, {});
  int next = 0;
  int wrong = 0;
  while (next < kLines) {
    ASSERT_TRUE(reader
                    .ReadMore([&](const LogLineRecord& line) {
                      wrong += line.text == absl::StrCat(next, std::string(next % 50, '.')) ? 0 : 1;
                      ++next;
                    })
                    .ok());
    ASSERT_EQ(wrong, 0) << "at " << next;
    if (next < kLines) {
      ASSERT_TRUE(Woken(reader)) << next;
    }
  }
  EXPECT_THAT(More(reader), IsEmpty());
}

TEST_F(LogReaderTest, AFollowerThatCannotKeepUpIsToldSo) {
  constexpr int kLines = 30'000;
  const Writer writer([this] {
    TaskLog log({.folder = Folder("a"), .most_bytes = 16 << 10, .file_bytes = 4 << 10});
    for (int i = 0; i < kLines; ++i) {
      log.Add(At(0), LogKind::kStdout, absl::StrCat(i));
      if (i % 10 == 9) log.Flush();
    }
  });
  LogReader reader({{logs_, ""}}, {});
  int next = 0;
  bool told = false;
  while (next < kLines) {
    ASSERT_TRUE(reader
                    .ReadMore([&](const LogLineRecord& line) {
                      if (line.kind == LogKind::kMuster) {
                        EXPECT_EQ(line.text, kRemoved);
                        told = true;
                        return;
                      }
                      int number = -1;
                      ASSERT_TRUE(absl::SimpleAtoi(absl::string_view(line.text.data(), line.text.size()), &number));
                      ASSERT_TRUE(number == next || (told && number > next)) << number << " after " << next - 1;
                      told = false;
                      next = number + 1;
                    })
                    .ok());
    if (next < kLines) {
      ASSERT_TRUE(Woken(reader)) << next;
    }
  }
}

std::string Written(int attempt, int line) {
  return absl::StrCat(attempt, ".", line, std::string((attempt * 31 + line * 7) % 997, 'x'), "#");
}

TEST_F(LogReaderTest, NothingThatWasFlushedIsLostWhenWritersAreKilled) {
  constexpr int kAttempts = 25;
  constexpr int kFlushed = 20;  // lines
  std::map<int, int> flushed;   // by attempt
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    Writer writer([&] {
      TaskLog log({.folder = Folder("a"), .file_bytes = 20'000});
      for (int line = 0;; ++line) {
        log.Add(At(attempt), LogKind::kStdout, Written(attempt, line));
        if (line % kFlushed != kFlushed - 1) continue;
        log.Flush();
        if (write(ends[1], "", 1) != 1) return;
      }
    });
    for (int i = 0; i <= attempt * 7 % 11; ++i) {
      char byte = 0;
      ASSERT_EQ(read(ends[0], &byte, 1), 1);
      flushed[attempt] += kFlushed;
    }
    writer.Kill();
    close(ends[0]);
    close(ends[1]);
  }

  LogReader reader({{logs_, ""}}, {});
  std::map<int, int> seen;
  int attempt = 0;
  bool torn = false;
  for (std::string text : More(reader)) {
    text = text.substr(3);
    if (torn || text != Written(attempt, seen[attempt])) {
      for (int later = attempt + 1; later < kAttempts; ++later)
        if (text == Written(later, 0)) {
          attempt = later;
          torn = false;
        }
    }
    if (!torn && text == Written(attempt, seen[attempt])) {
      ++seen[attempt];
      continue;
    }
    // Only the line that a killed writer had begun, and no later one of the same attempt.
    ASSERT_TRUE(!torn && absl::StartsWith(Written(attempt, seen[attempt]), text)) << attempt << ": " << text;
    torn = true;
  }
  for (const auto& [number, lines] : flushed) EXPECT_GE(seen[number], lines) << number;
}

}  // namespace
}  // namespace muster::log_reader_test
