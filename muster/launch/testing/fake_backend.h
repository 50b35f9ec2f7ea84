// A Backend without processes, which backend_contract_test.cc holds to the same contract as the real ones. It knows
// four programs by their names: echo, false, sleep and yes. Not thread-safe. Test-only.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/launch/backends/backend.h"
#include "muster/launch/system/fd_loop.h"

namespace muster {

class FakeBackend final : public Backend {
 public:
  FakeBackend(const BackendOptions&, FdLoop& loop, BackendEvents& events) : loop_(loop), events_(events) {}
  ~FakeBackend() override {
    Stop();
    close(wake_fd_);
  }

  absl::Status Start() override {
    started_ = true;
    loop_.Watch(wake_fd_, POLLIN, [this](short) { OnWake(); });
    return absl::OkStatus();
  }
  int Stop() override {
    if (std::exchange(started_, false)) loop_.Forget(wake_fd_);
    running_.clear();
    return 0;
  }

  absl::Status Launch(const ProcessSpec& process) override {
    const std::string& program = process.arguments[0];
    Running running;
    if (program == "echo") {
      running.output = absl::StrCat(absl::StrJoin(process.arguments.begin() + 1, process.arguments.end(), " "), "\n");
      running.ended = ExitStatus{};
    } else if (program == "false") {
      running.ended = ExitStatus{.code = 1};
    } else if (program == "yes") {
      running.endless = true;
    } else if (program != "sleep") {
      return absl::NotFoundError(absl::StrCat(program, ": no such program"));
    }
    running_[process.task] = running;
    Wake();
    return absl::OkStatus();
  }
  void End(const TaskId& task, EndMode mode) override {
    const auto found = running_.find(task);
    if (found == running_.end()) return;
    found->second.ended = ExitStatus{.signal = mode == EndMode::kGently ? SIGTERM : SIGKILL};
    Wake();
  }
  void PauseOutput(bool paused) override {
    paused_ = paused;
    Wake();
  }
  absl::Time deadline() const override { return absl::InfiniteFuture(); }
  void OnTime() override {}
  LocalProcess ProcessOf(const TaskId&) const override { return {}; }

 private:
  struct Running {
    std::string output;               // that nobody has been told of
    bool endless = false;             // it writes for ever
    std::optional<ExitStatus> ended;  // nobody has been told yet
  };

  void Wake() const { eventfd_write(wake_fd_, 1); }
  void OnWake() {
    eventfd_t ignored;
    eventfd_read(wake_fd_, &ignored);
    std::vector<TaskId> tasks;
    for (const auto& [task, running] : running_) tasks.push_back(task);
    for (const TaskId& task : tasks) Tell(task);
  }
  void Tell(const TaskId& task) {
    const Running running = running_[task];
    if (running.ended) running_.erase(task);
    if (!running.output.empty()) events_.OnOutput(task, OutputStream::kStdout, running.output);
    if (running.ended) return events_.OnExit(task, *running.ended);
    if (!running.endless || paused_) return;
    events_.OnOutput(task, OutputStream::kStdout, "y\n");
    Wake();
  }

  FdLoop& loop_;
  BackendEvents& events_;
  const int wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::map<TaskId, Running> running_;
  bool started_ = false;
  bool paused_ = false;
};

}  // namespace muster
