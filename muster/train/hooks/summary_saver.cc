#include "muster/train/hooks/summary_saver.h"

#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/summary/summary_values.h"
#include "muster/train/hooks/run_summary.h"
#include "muster/train/hooks/timer_options.h"

namespace muster {
namespace {

class SummarySaverHook final : public SessionHook {
 public:
  explicit SummarySaverHook(const SummarySaverOptions& options)
      : options_(options),
        timer_(MakeTimer("SummarySaver", options.save_steps, options.save_interval, "save_steps and save_interval")) {}

  absl::Status Begin() override {
    if (options_.summary_op && options_.scaffold_summary)
      return WrongOptionError(
          "SummarySaver: exactly one of the scaffold's summary and a summary_op may be given, not both");
    return timer_.status();
  }

  absl::Status AfterCreateSession(const SessionContext& session) override {
    if (session.summaries == nullptr)
      return absl::FailedPreconditionError(
          "SummarySaver needs the chief's session with a summary_dir or checkpoint_dir");
    return BeginAt(*session.summaries, session.global_step + 1);
  }

  absl::Status BeforeRun(RunContext& context) override {
    const SessionContext& session = context.session();
    // An earlier checkpoint was loaded meanwhile (Session::Restore).
    if (session.global_step < last_step_) RETURN_IF_ERROR(BeginAt(*session.summaries, session.global_step + 1));
    requested_ = !saved_ || timer_->ShouldTriggerForStep(session.global_step + 1, session.now);
    if (requested_) context.WantSummaries();
    return absl::OkStatus();
  }

  absl::Status AfterRun(RunContext& context, const RunValues& values) override {
    EventFileWriter& writer = *context.session().summaries;
    last_step_ = values.global_step;
    if (!requested_) return absl::OkStatus();
    saved_ = true;
    timer_->UpdateLastTriggered(values.global_step, context.session().now);
    if (values.summaries != nullptr) RETURN_IF_ERROR(whole_run_.Write(writer, *values.summaries));
    ASSIGN_OR_RETURN(const std::string summary, Summary(values));
    return writer.AddSummary(summary, values.global_step);
  }

  absl::Status End(const SessionContext& session) override {
    EventFileWriter& writer = *session.summaries;
    RETURN_IF_ERROR(whole_run_.End(writer, session.now));
    RETURN_IF_ERROR(writer.AddSessionLog(SessionStatus::kStop, session.global_step));
    return writer.Flush();
  }

 private:
  // The directory's events of `step` and later belong to a life that has ended: TensorBoard drops them, and the first
  // run after that writes its summaries.
  absl::Status BeginAt(EventFileWriter& writer, int64_t step) {
    if (step <= last_step_) saved_ = false;
    last_step_ = step - 1;
    return writer.AddSessionLog(SessionStatus::kStart, step);
  }

  absl::StatusOr<std::string> Summary(const RunValues& values) const {
    const SummaryOp& op = options_.summary_op ? options_.summary_op : options_.scaffold_summary;
    if (!op) return SummaryOf(values);
    std::string summary = op();
    RETURN_IF_ERROR(
        CheckSummary(summary, options_.summary_op ? "the summary_op's bytes" : "the scaffold's summary's bytes"));
    return summary;
  }

  const SummarySaverOptions options_;
  absl::StatusOr<SecondOrStepTimer> timer_;
  bool requested_ = false;  // for the current run
  bool saved_ = false;
  int64_t last_step_ = -1;
  WholeRunSummary whole_run_;
};

}  // namespace

std::shared_ptr<SessionHook> SummarySaver(const SummarySaverOptions& options) {
  return std::make_shared<SummarySaverHook>(options);
}

}  // namespace muster
