#include "muster/train/tensorflow/supervisor.h"

#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "muster/algo/sources/with_global_values.h"
#include "muster/base/log.h"
#include "muster/base/retry_pause.h"
#include "muster/base/status_macros.h"
#include "muster/store/calls/shutdown_wait.h"
#include "muster/summary/summary_values.h"

namespace muster {
namespace {

constexpr absl::Duration kFirstSavePause = absl::Seconds(5);
constexpr absl::Duration kLongestSavePause = absl::Minutes(1);

SessionManagerOptions ManagerOptions(const SupervisorOptions& options, bool is_chief) {
  return {.is_chief = is_chief,
          .checkpoint_dir = options.logdir,
          .scaffold = options.scaffold,
          .max_wait = absl::Seconds(options.max_wait_secs)};
}

}  // namespace

Supervisor::Supervisor(SessionEnvironment environment, SupervisorOptions options)
    : environment_(std::move(environment)),
      options_(std::move(options)),
      manager_(environment_, ManagerOptions(options_, options_.is_chief.value_or(environment_.is_chief))),
      watch_(environment_.metrics, *environment_.client, *environment_.clock),
      coordinator_({.clock = environment_.wait_clock}) {}

Supervisor::~Supervisor() {
  const absl::Status stopped = Stop();
  if (!stopped.ok()) LogError("the supervisor stopped: ", stopped.message());
}

absl::Status Supervisor::PrepareOrWaitForSession(bool start_standard_services) {
  RETURN_IF_ERROR(Prepare());
  return summaries_ && start_standard_services ? StartStandardServices() : absl::OkStatus();
}

absl::Status Supervisor::Prepare() {
  if (stopped_ || IsPrepared())
    return absl::FailedPreconditionError("a Supervisor has one session: make another Supervisor for the next");
  RETURN_IF_ERROR(CheckSessionConfig(options_.config));
  WarnOfWrongChief(options_.is_chief, environment_.is_chief, environment_.place.task);
  const ModelBinding& binding = environment_.algorithm->binding();
  RETURN_IF_ERROR(CheckDeviceFilters(options_.config.device_filters, binding, environment_.place));
  manager_.scaffold().Finalize();
  const auto prepare = [this] {
    return is_chief() ? manager_.PrepareSession() : manager_.WaitForSession(absl::Seconds(options_.max_wait_secs));
  };
  absl::StatusOr<int64_t> step = prepare();
  // A ps was restarted before it had a model, and doesn't know which tasks had joined.
  while (absl::IsAborted(step.status())) step = prepare();
  RETURN_IF_ERROR(step.status());
  global_step_ = *step;
  if (options_.config.log_device_placement) LogDevicePlacement(binding, environment_.place);
  if (is_chief() && !options_.logdir.empty()) {
    ASSIGN_OR_RETURN(summaries_, EventFileWriter::Open(*environment_.files, *environment_.clock, options_.logdir, {}));
    // An earlier life's events of later steps are out of date.
    RETURN_IF_ERROR(summaries_->AddSessionLog(SessionStatus::kStart, *step + 1));
  }
  watch_.Is(TrainingState::kTraining);
  const HoldTurn turn(turn_);
  counted_step_ = *step;
  prepared_ = true;
  return absl::OkStatus();
}

bool Supervisor::IsPrepared() const {
  const HoldTurn turn(turn_);
  return prepared_;
}

absl::Status Supervisor::StartStandardServices() {
  RETURN_IF_ERROR(CheckBetweenSteps("StartStandardServices"));
  if (!is_chief())
    return absl::FailedPreconditionError(
        "only the chief may call StartStandardServices: no other task saves or writes summaries");
  if (stopped_ || !IsPrepared())
    return absl::FailedPreconditionError("StartStandardServices needs a session, between its start and its stop");
  if (!summaries_) {
    LogWarning("no standard services: the supervisor has no logdir for checkpoints and summaries");
    return absl::OkStatus();
  }
  if (std::exchange(serving_, true)) return absl::OkStatus();
  const auto start = [this](const char* name, double secs, absl::Status (Supervisor::*work)()) {
    if (secs <= 0) return;
    LogInfo("Starting ", name, " thread.");
    threads_.push_back(std::make_unique<LooperThread>(
        coordinator_,
        LooperThreadOptions{.name = name, .interval = absl::Seconds(secs), .clock = environment_.wait_clock},
        [this, work] { return (this->*work)(); }));
  };
  start("summary", options_.save_summaries_secs, &Supervisor::AskForSummaries);
  start("step counter", options_.save_summaries_secs, &Supervisor::CountSteps);
  start("checkpoint", options_.save_model_secs, &Supervisor::SaveOrContinue);
  return absl::OkStatus();
}

absl::Status Supervisor::ManagedSession(absl::FunctionRef<absl::Status()> body) {
  absl::Status status = PrepareOrWaitForSession();
  if (status.ok()) status = body();
  // Training has ended, or a stop was requested: both are clean ends, unless a ps was gone at the stop.
  if (absl::IsCancelled(status) && !IsInterrupted(status)) status = absl::OkStatus();
  const absl::Status unheard = coordinator_.RequestStop(status);
  absl::Status stopped = Stop();
  stopped.Update(unheard);
  return stopped;
}

absl::Status Supervisor::CheckBetweenSteps(const char* called) const {
  if (stepping_ != std::this_thread::get_id()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(called, " within a step: a loss function may not call it (only RequestStop)"));
}

absl::Status Supervisor::CheckOpen() const {
  if (closed_) return absl::FailedPreconditionError("Attempted to use a closed Session.");
  if (!prepared_) return absl::FailedPreconditionError("call PrepareOrWaitForSession before Run");
  return absl::OkStatus();
}

absl::Status Supervisor::Fetch(absl::FunctionRef<absl::Status()> fetch) {
  RETURN_IF_ERROR(CheckBetweenSteps("Fetch"));
  const HoldTurn turn(turn_);
  RETURN_IF_ERROR(CheckOpen());
  if (environment_.algorithm->busy()) RETURN_IF_ERROR(manager_.FinishPending());
  stepping_ = std::this_thread::get_id();
  const absl::Cleanup out_of_step = [this] { stepping_ = std::thread::id(); };
  const StepSummaries::Scope registering(step_summaries_, /*wanted=*/false);
  RETURN_IF_ERROR(WithGlobalValues(*environment_.client, environment_.algorithm->source(), fetch));
  global_step_ = environment_.client->global_step();
  return absl::OkStatus();
}

absl::StatusOr<StepResult> Supervisor::Run() {
  RETURN_IF_ERROR(CheckBetweenSteps("Run"));
  const HoldTurn turn(turn_);
  RETURN_IF_ERROR(CheckOpen());
  stepping_ = std::this_thread::get_id();
  const absl::Cleanup out_of_step = [this] { stepping_ = std::thread::id(); };
  const StepSummaries::Scope registering(step_summaries_, summaries_wanted_);
  ASSIGN_OR_RETURN(const StepResult result, environment_.algorithm->Step(*environment_.client));
  global_step_ = result.global_step;
  watch_.Count(result, manager_.saver());
  RETURN_IF_ERROR(RefuseLoadRequest());
  RETURN_IF_ERROR(environment_.algorithm->source().ShowValues());
  if (std::exchange(summaries_wanted_, false)) RETURN_IF_ERROR(WriteSummaries(result));
  return result;
}

// Answers `muster checkpoint load`, which waits for the chief.
absl::Status Supervisor::RefuseLoadRequest() {
  const std::string path = environment_.client->TakeLoadRequest();
  if (path.empty()) return absl::OkStatus();
  const absl::Status refused = absl::FailedPreconditionError(
      "the chief trains in a Supervisor's session, which loads a checkpoint only at its start: end this run, and let a "
      "new one start from " +
      path);
  LogWarning("did not load ", path, ": ", refused.message());
  return environment_.client->ReportLoad(refused);
}

absl::Status Supervisor::WriteSummaries(const StepResult& result) {
  if (const SummaryOp& op = manager_.scaffold().options().summary) {
    const std::string summary = op();
    RETURN_IF_ERROR(CheckSummary(summary, "the scaffold's summary's bytes"));
    return summaries_->AddSummary(summary, result.global_step);
  }
  RETURN_IF_ERROR(whole_run_.Write(*summaries_, step_summaries_));
  return summaries_->AddSummary(SummaryOf({.loss = result.loss,
                                           .global_step = result.global_step,
                                           .scalars = step_summaries_.scalars(),
                                           .summaries = &step_summaries_}),
                                result.global_step);
}

absl::StatusOr<std::string> Supervisor::Save() {
  RETURN_IF_ERROR(CheckBetweenSteps("Save"));
  const HoldTurn turn(turn_);
  if (!prepared_ || closed_ || manager_.saver() == nullptr)
    return absl::FailedPreconditionError(
        "Save needs the chief's session with a logdir, between its start and its stop");
  const WorkerProgress::Busy busy(environment_.client->progress(), "saving a checkpoint");
  ASSIGN_OR_RETURN(std::string path, manager_.saver()->Save());
  RETURN_IF_ERROR(summaries_->AddSessionLog(SessionStatus::kCheckpoint, global_step_, path));
  return path;
}

// A save that fails is tried again sooner than at the thread's interval. OutOfRange from a thread would be a clean end
// of training.
absl::Status Supervisor::SaveOrContinue() {
  RetryPause pause(kFirstSavePause, std::min(kLongestSavePause, absl::Seconds(options_.save_model_secs)));
  for (;;) {
    const absl::Status saved = Save().status();
    if (saved.ok() || !MaySaveLater(saved)) return saved;
    const absl::Duration wait = pause.Next();
    LogWarning("no checkpoint: ", saved.message(), "; training goes on, the next attempt is in ",
               absl::FormatDuration(wait));
    if (coordinator_.WaitForStop(wait)) return absl::OkStatus();
  }
}

bool Supervisor::MaySaveLater(const absl::Status& failed) const {
  const HoldTurn turn(turn_);
  return manager_.saver() != nullptr && manager_.saver()->IsWorthARetry(failed);
}

// The step's own thread writes them: histograms and images must be made only in a step that is written.
absl::Status Supervisor::AskForSummaries() {
  const HoldTurn turn(turn_);
  summaries_wanted_ = true;
  return absl::OkStatus();
}

absl::Status Supervisor::SummarizeNextStep() {
  RETURN_IF_ERROR(CheckBetweenSteps("SummarizeNextStep"));
  const HoldTurn turn(turn_);
  if (!prepared_ || closed_ || !summaries_)
    return absl::FailedPreconditionError(
        "SummarizeNextStep needs the chief's session with a logdir, between its start and its stop");
  summaries_wanted_ = true;
  return absl::OkStatus();
}

absl::Status Supervisor::CountSteps() {
  const HoldTurn turn(turn_);
  const absl::Time now = environment_.wait_clock->Now();
  const absl::Duration elapsed = now - std::exchange(counted_at_, now);
  const int64_t step = global_step_;
  const int64_t steps = step - std::exchange(counted_step_, step);
  if (elapsed == absl::InfiniteDuration() || elapsed <= absl::ZeroDuration()) return absl::OkStatus();
  const double rate = static_cast<double>(steps) / absl::ToDoubleSeconds(elapsed);
  LogInfo("global_step/sec: ", absl::StrFormat("%g", rate));
  return summaries_->AddScalar("global_step/sec", static_cast<float>(rate), step);
}

void Supervisor::Loop(double interval_secs, std::function<absl::Status()> target) {
  threads_.push_back(std::make_unique<LooperThread>(
      coordinator_,
      LooperThreadOptions{.name = "loop", .interval = absl::Seconds(interval_secs), .clock = environment_.wait_clock},
      std::move(target)));
}

absl::Status Supervisor::StartQueueRunners(const std::vector<QueueRunner*>& runners) {
  for (QueueRunner* runner : runners) RETURN_IF_ERROR(runner->Start(coordinator_));
  return absl::OkStatus();
}

absl::Status Supervisor::Stop() {
  RETURN_IF_ERROR(CheckBetweenSteps("Stop"));
  if (std::exchange(stopped_, true)) return absl::OkStatus();
  coordinator_.RequestStop();
  absl::Status first_error = coordinator_.Join({.stop_grace_period = absl::Seconds(options_.stop_grace_secs)});
  first_error.Update(EndSession());
  return first_error;
}

absl::Status Supervisor::EndSession() {
  const HoldTurn turn(turn_);
  closed_ = true;
  absl::Status first_error;
  if (summaries_) {
    if (coordinator_.requested_error().ok()) first_error = whole_run_.End(*summaries_, environment_.clock->Now());
    first_error.Update(summaries_->AddSessionLog(SessionStatus::kStop, global_step_));
    first_error.Update(summaries_->Close());
  }
  if (!manager_.joined()) return first_error;
  environment_.algorithm->End();
  if (prepared_) first_error.Update(manager_.FinishPending());
  first_error.Update(LeavesTraining(environment_) ? LeftTraining() : environment_.client->Done());
  watch_.Is(TrainingState::kEnded);
  return first_error;
}

}  // namespace muster
