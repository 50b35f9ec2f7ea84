#include "apps/muster/hosts/host_command.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <string_view>

#include "absl/time/time.h"
#include "apps/muster/terminal/own_environment.h"
#include "muster/base/status_macros.h"
#include "muster/launch/foreground/copied_folder.h"
#include "muster/launch/system/random_hex.h"
#include "muster/launch/task/task_environment.h"
#include "muster/launch/task_run/code_copy.h"
#include "muster/launch/task_run/task_run.h"

namespace muster {
namespace {

constexpr int kRunIdBytes = 8;
constexpr size_t kMostOutput = size_t{1} << 20;  // that is kept of each stream

// The one task of a run, behind those that bring it its folder.
class HostCommand final : public TaskRunClient {
 public:
  explicit HostCommand(const HostCommandOptions& options)
      : options_(options), run_id_(RandomHex(kRunIdBytes)), plan_(PlanOf(options)), run_(Options(), *this) {
    process_ = {.task = kTask, .arguments = options.words, .environment = options.environment};
    process_.environment.emplace_back(kRunIdVariable, run_id_);
  }

  absl::StatusOr<HostAnswer> Run() {
    RETURN_IF_ERROR(run_.Start());
    const absl::Status ran = Supervised();
    run_.Stop();
    RETURN_IF_ERROR(ran);
    return answer_;
  }

  void OnOutput(const TaskId& task, OutputStream stream, std::string_view bytes) override {
    if (copy_.has_value() && copy_->Owns(task)) return copy_->OnOutput(task, stream, bytes);
    std::string& text = stream == OutputStream::kStdout ? answer_.stdout_text : answer_.stderr_text;
    text += bytes.substr(0, kMostOutput - std::min(kMostOutput, text.size()));
  }
  void OnOutputEnd(const TaskId&) override {}
  std::deque<std::string> LastLines(const TaskId&) const override { return {}; }
  void OnStarted(const ProcessSpec&, const LocalProcess&) override {}
  void Say(const std::string&) override {}
  void Wait() override { run_.RunRound(absl::InfiniteFuture()); }

 private:
  static inline const TaskId kTask{"command", 0};

  static HostPlan PlanOf(const HostCommandOptions& options) {
    HostPlan plan = options.plan;
    std::erase_if(plan.hosts, [&](const Host& host) { return host.name != options.host; });
    plan.placement = {{kTask, options.host}};
    return plan;
  }
  TaskRunOptions Options() const {
    return {.engine = kSshEngine,
            .backend = {.run_id = run_id_,
                        .environment = OwnEnvironment(),
                        .plan = options_.folder.empty() ? plan_ : WithTransfers(plan_)}};
  }

  absl::Status Supervised() {
    // Reaches the host.
    RETURN_IF_ERROR(run_.Reserve({{.task = kTask, .ports = {}}}).status());
    if (!options_.folder.empty()) RETURN_IF_ERROR(CopyFolder());
    RETURN_IF_ERROR(run_.Launch({process_}));
    run_.Supervise({.chief = kTask});
    if (run_.interrupts() > 0) return absl::CancelledError("interrupted");
    answer_.exit_code = run_.supervisor()->exit_code();
    return absl::OkStatus();
  }

  absl::Status CopyFolder() {
    ASSIGN_OR_RETURN(CopiedFolder folder, CopiedFolder::Take(options_.folder, options_.folder, options_.left_out));
    const std::string ahead = CopyAheadText(folder.tree);
    if (!ahead.empty() && options_.say) options_.say(ahead);
    copy_.emplace(folder.OrderFor(plan_, run_id_), folder.tree, run_);
    const auto placed = copy_->Run();
    RETURN_IF_ERROR(placed.status());
    process_.directory = folder.WorkFolder(placed->at(options_.host), options_.folder);
    return absl::OkStatus();
  }

  const HostCommandOptions& options_;
  const std::string run_id_;
  const HostPlan plan_;
  ProcessSpec process_;
  HostAnswer answer_;
  TaskRun run_;
  std::optional<CodeCopy> copy_;
};

}  // namespace

absl::StatusOr<HostAnswer> RunOnHost(const HostCommandOptions& options) { return HostCommand(options).Run(); }

}  // namespace muster
