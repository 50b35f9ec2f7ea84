#include "muster/base/status_macros.h"
#include "muster/train/hooks.h"
#include "muster/train/hooks/options.h"

namespace muster {
namespace {

class SummarySaverHook final : public SessionHook {
 public:
  explicit SummarySaverHook(const SummarySaverOptions& options)
      : timer_(MakeTimer(options.save_steps, options.save_interval, "save_steps and save_interval")) {}

  absl::Status Begin() override { return timer_.status(); }
  absl::Status AfterCreateSession(const SessionContext& session) override {
    if (session.summaries == nullptr)
      return absl::FailedPreconditionError(
          "SummarySaver needs the chief's session with a summary_dir or checkpoint_dir");
    return session.summaries->AddSessionLog(SessionStatus::kStart, session.global_step);
  }
  absl::Status AfterRun(RunContext& context, const RunValues& values) override {
    const absl::Time now = context.session().now;
    if (!timer_->ShouldTriggerForStep(values.global_step, now)) return absl::OkStatus();
    timer_->UpdateLastTriggered(values.global_step, now);
    std::vector<ScalarSummary> scalars = {{"loss", static_cast<float>(values.loss)}};
    for (const auto& [name, value] : values.scalars) scalars.push_back({name, static_cast<float>(value)});
    return context.session().summaries->AddScalars(scalars, values.global_step);
  }
  absl::Status End(const SessionContext& session) override {
    RETURN_IF_ERROR(session.summaries->AddSessionLog(SessionStatus::kStop, session.global_step));
    return session.summaries->Flush();
  }

 private:
  absl::StatusOr<SecondOrStepTimer> timer_;
};

}  // namespace

std::shared_ptr<SessionHook> SummarySaver(const SummarySaverOptions& options) {
  return std::make_shared<SummarySaverHook>(options);
}

}  // namespace muster
