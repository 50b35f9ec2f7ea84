#include "tests/process/testing/killed_run.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>

#include "absl/strings/escaping.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/checkpoint/checkpoint_reader.h"

namespace muster {
namespace {

const std::string kMuster = BinFolder() + "/muster";

}  // namespace

std::vector<std::string> ToyThatCounts() { return {BinFolder() + "/toy_worker", "--gradient=-1", "--learning_rate=1"}; }

FinalValues ReadFinal(const std::string& directory, int64_t width) {
  FinalValues final;
  final.w.resize(width);
  const auto latest = LatestCheckpoint(PosixFileSystem(), directory);
  EXPECT_TRUE(latest.ok() && *latest) << latest.status();
  if (!latest.ok() || !*latest) return final;
  const auto checkpoint = CheckpointReader::Open(PosixFileSystem(), **latest).value();
  final.global_step = checkpoint->manifest().global_step;
  const auto& extras = checkpoint->manifest().extras;
  if (const auto work = extras.find("muster/work_queue"); work != extras.end()) {
    EXPECT_TRUE(absl::Base64Unescape(work->second, &final.work));
  }
  EXPECT_TRUE(checkpoint->ReadVariable("w", AsMutableBytes(final.w.data(), final.w.size())).ok());
  EXPECT_TRUE(checkpoint->ReadVariable("b", AsMutableBytes(final.b.data(), final.b.size())).ok());
  return final;
}

KilledRun::KilledRun(int workers, int64_t width, const std::vector<std::string>& flags, int ps)
    : width_(width),
      run_(Joined({kMuster, "run", "--ps", std::to_string(ps), "--workers", std::to_string(workers), "--muster-ps",
                   "--model_dir", model_.path(), "--max-restarts", "1000", "--"},
                  Joined(ToyThatCounts(), Joined({"--steps=1000000000", "--width=" + std::to_string(width)}, flags)))) {
}

void KilledRun::WaitForSteps() {
  size_t at = run_.err.size();
  for (int line = 0; line < 5 && at != std::string::npos; ++line)
    at = run_.WaitForErrLine("[worker:0] ", "loss = ", at);
}

int KilledRun::End() {
  WaitForSteps();
  run_.Signal(SIGINT);
  return run_.Wait();
}

void KilledRun::Kill(const std::string& task) { EndAndAwaitNext(task, SIGKILL, "was killed by signal 9"); }
void KilledRun::Terminate(const std::string& task) { EndAndAwaitNext(task, SIGTERM, "exited with 138"); }

void KilledRun::EndAndAwaitNext(const std::string& task, int signal, const std::string& how_it_ends) {
  WaitForSteps();
  const pid_t pid = PidOf(task);
  ASSERT_GT(pid, 0) << task;
  const size_t before = run_.err.size();
  EXPECT_EQ(kill(pid, signal), 0) << task;
  run_.WaitForErr("[muster] " + task + " is process ", run_.WaitForErr(task + " " + how_it_ends, before));
}

pid_t KilledRun::PidOf(const std::string& task) {
  // Its line may still be on its way, or half of it.
  const std::string first = task == "worker:0" ? task + " (the chief)" : task;
  run_.WaitForErr("\n", run_.WaitForErr("[muster] " + first + " is process ", 0));
  const std::string again = "[muster] " + task + " is process ";
  if (const size_t newest = run_.err.rfind(again); newest != std::string::npos) run_.WaitForErr("\n", newest);
  pid_t pid = -1;
  for (const std::string& beginning : {"[muster] " + first + " is process ", again})
    if (const auto lives = After(run_.err, beginning); !lives.empty()) pid = std::atoi(lives.back().c_str());
  return pid;
}

}  // namespace muster
