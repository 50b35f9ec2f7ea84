#include "tests/process/testing/killed_processes.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <map>

namespace muster {
namespace {

sigset_t ChildEnded() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  return signals;
}

}  // namespace

void DieAt(ArenaPoint point, KillLog& log) {
  ++log.deaths[static_cast<size_t>(point)];
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

void ExpectDeathsAt(absl::Span<const ArenaPoint> points, const KillLog& log) {
  for (const ArenaPoint point : points)
    EXPECT_GT(log.Deaths(point), 0u) << "no process died at point " << static_cast<int>(point);
}

std::vector<std::byte> EvenGradient(const Arena& arena, int slice, double value) {
  const ArenaLayout::Slice& layout = arena.layout().slices()[slice];
  std::vector<std::byte> bytes(layout.bytes);
  const auto narrow = static_cast<float>(value);
  for (int64_t i = 0; i < layout.elements; ++i)
    std::memcpy(bytes.data() + i * layout.element_size,
                layout.element_size == 8 ? static_cast<const void*>(&value) : &narrow, layout.element_size);
  return bytes;
}

pid_t Fork(absl::FunctionRef<void()> live) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  live();
  _exit(0);
}

int RunUntilKilled(int count, int kills, absl::Duration patience, KillLog& log, absl::FunctionRef<void(int)> live) {
  const sigset_t child_ended = ChildEnded();
  sigprocmask(SIG_BLOCK, &child_ended, nullptr);
  const timespec limit = absl::ToTimespec(patience);
  std::map<pid_t, int> running;
  const auto start = [&](int index) { running[Fork([&] { live(index); })] = index; };
  for (int index = 0; index < count; ++index) start(index);
  int died = 0;
  bool killed = true;  // and didn't end in another way
  while (!running.empty()) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid == 0) {
      if (sigtimedwait(&child_ended, nullptr, &limit) != SIGCHLD) break;
      continue;
    }
    const int index = running.at(pid);
    running.erase(pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (!killed) break;  // a CHECK, say
    if (++died >= kills) log.stop = true;
    start(index);
  }
  const bool stuck = !killed || !running.empty();
  for (const auto& [pid, index] : running) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  return stuck ? -1 : died;
}

}  // namespace muster
