// A Backend without processes, which backend_contract_test.cc holds to the same contract as the real ones. It knows six
// programs by their names: cat, echo, env (the ProcessSpec's variables), false, sleep and yes. Its ports are reserved
// like those of this machine. Not thread-safe. Test-only.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/net/free_ports.h"
#include "muster/launch/backends/backend.h"
#include "muster/launch/system/fd_loop.h"
#include "muster/launch/system/later_calls.h"

namespace muster {

// What echo and env print.
inline std::string WordsOf(const ProcessSpec& process) {
  return absl::StrCat(absl::StrJoin(process.arguments.begin() + 1, process.arguments.end(), " "), "\n");
}
inline std::string VariablesOf(const ProcessSpec& process) {
  return absl::StrCat(absl::StrJoin(process.environment, "\n", absl::PairFormatter("=")), "\n");
}

class FakeBackend final : public Backend {
 public:
  FakeBackend(const BackendOptions&, FdLoop& loop, BackendEvents& events) : loop_(loop), events_(events) {}
  ~FakeBackend() override {
    Stop();
    close(wake_fd_);
  }

  absl::Status Start() override {
    started_ = true;
    later_.emplace(loop_);
    loop_.Watch(wake_fd_, POLLIN, [this](short) { OnWake(); });
    return absl::OkStatus();
  }
  int Stop() override {
    if (std::exchange(started_, false)) loop_.Forget(wake_fd_);
    later_.reset();
    running_.clear();
    ports_.clear();
    return 0;
  }

  void Reserve(const TaskId& task, const std::vector<uint16_t>& ports) override {
    std::vector<std::string> addresses;
    for (const uint16_t number : ports) {
      auto port = number == 0 ? FreePorts::Reserve(1) : FreePorts::Take({.first = number, .count = 1});
      if (!port.ok()) return later_->Add([this, task, why = port.status()] { events_.OnNotReserved(task, why); });
      addresses.push_back(absl::StrCat("127.0.0.1:", port->port(0)));
      ports_.push_back(*std::move(port));
    }
    later_->Add([this, task, addresses] { events_.OnReserved(task, addresses); });
  }
  void Launch(const ProcessSpec& process) override {
    const TaskId task = process.task;
    const std::string& program = process.arguments[0];
    Running running;
    if (program == "echo" || program == "env") {
      running.output = program == "echo" ? WordsOf(process) : VariablesOf(process);
      running.ended = ExitStatus{};
    } else if (program == "false") {
      running.ended = ExitStatus{.code = 1};
    } else if (program == "yes") {
      running.endless = true;
    } else if (program == "cat") {
      running.copies = true;
      if (!process.takes_input) running.ended = ExitStatus{};
    } else if (program != "sleep") {
      return later_->Add([this, task, program] {
        events_.OnNotStarted(task, absl::NotFoundError(absl::StrCat(program, ": no such program")));
      });
    }
    running_[task] = running;
    later_->Add([this, task] {
      running_[task].told = true;
      Wake();
      events_.OnStarted(task, {});
    });
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
  void Input(const TaskId& task, std::string_view bytes) override {
    const auto found = running_.find(task);
    if (found == running_.end() || found->second.ended) return;
    Running& running = found->second;
    (running.copies ? running.output : running.unread) += bytes;
    if (running.copies && bytes.empty()) running.ended = ExitStatus{};
    if (running.unread.size() > kMaxWaitingInput) running.ended = ExitStatus{.signal = SIGKILL};
    Wake();
  }
  absl::Time deadline() const override { return absl::InfiniteFuture(); }
  void OnTime() override {}

 private:
  struct Running {
    std::string output;               // that nobody has been told of
    bool endless = false;             // it writes for ever
    bool copies = false;              // it writes what it reads
    std::string unread;               // input
    bool told = false;                // its start was reported
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
    if (!running.told) return;
    running_[task].output.clear();
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
  std::optional<LaterCalls> later_;  // while started
  std::map<TaskId, Running> running_;
  std::vector<FreePorts> ports_;
  bool started_ = false;
  bool paused_ = false;
};

}  // namespace muster
