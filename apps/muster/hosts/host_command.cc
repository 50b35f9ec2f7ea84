#include "apps/muster/hosts/host_command.h"

#include <algorithm>
#include <deque>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "apps/muster/terminal/own_environment.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/system/random_hex.h"
#include "muster/launch/task/task_environment.h"
#include "muster/launch/task_run/task_run.h"

namespace muster {
namespace {

constexpr int kRunIdBytes = 8;
constexpr size_t kMostOutput = size_t{1} << 20;  // that is kept of each stream

// The one task of a run.
class HostCommand final : public TaskRunClient {
 public:
  HostCommand(HostPlan plan, const Host& host, std::vector<std::string> words)
      : run_id_(RandomHex(kRunIdBytes)), run_(Options(std::move(plan), host), *this) {
    process_ = {.task = kTask, .arguments = std::move(words), .environment = {{kRunIdVariable, run_id_}}};
  }

  absl::StatusOr<std::string> Run() {
    RETURN_IF_ERROR(run_.Start());
    const absl::Status ran = Supervised();
    run_.Stop();
    RETURN_IF_ERROR(ran);
    return stdout_;
  }

  void OnOutput(const TaskId&, OutputStream stream, std::string_view bytes) override {
    std::string& text = stream == OutputStream::kStdout ? stdout_ : stderr_;
    text += bytes.substr(0, kMostOutput - std::min(kMostOutput, text.size()));
  }
  void OnOutputEnd(const TaskId&) override {}
  std::deque<std::string> LastLines(const TaskId&) const override { return {}; }
  void OnStarted(const ProcessSpec&, const LocalProcess&) override {}
  void Say(const std::string&) override {}
  void Wait() override { run_.RunRound(absl::InfiniteFuture()); }

 private:
  static inline const TaskId kTask{"command", 0};

  TaskRunOptions Options(HostPlan plan, const Host& host) const {
    plan.hosts = {host};
    plan.placement = {{kTask, host.name}};
    return {.engine = kSshEngine,
            .backend = {.run_id = run_id_, .environment = OwnEnvironment(), .plan = std::move(plan)}};
  }

  absl::Status Supervised() {
    // Reaches the host.
    RETURN_IF_ERROR(run_.Reserve({{.task = kTask, .ports = {}}}).status());
    RETURN_IF_ERROR(run_.Launch({process_}));
    run_.Supervise({.chief = kTask});
    if (run_.interrupts() > 0) return absl::CancelledError("interrupted");
    if (run_.supervisor()->exit_code() == 0) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("`", process_.arguments[1], "` has failed there: ", OneLine(stderr_)));
  }

  const std::string run_id_;
  ProcessSpec process_;
  std::string stdout_, stderr_;
  TaskRun run_;
};

}  // namespace

absl::StatusOr<std::string> RunOnHost(const HostPlan& plan, const Host& host, std::vector<std::string> words) {
  return HostCommand(plan, host, std::move(words)).Run();
}

}  // namespace muster
