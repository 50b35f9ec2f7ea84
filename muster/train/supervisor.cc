#include "muster/train/supervisor.h"

#include "absl/strings/str_format.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/summary/summary_values.h"
#include "muster/train/error.h"

namespace muster {
namespace {

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
      coordinator_({.clock = environment_.wait_clock}) {}

Supervisor::~Supervisor() {
  const absl::Status stopped = Stop();
  if (!stopped.ok()) LogError("the supervisor stopped: ", stopped.message());
}

absl::Status Supervisor::PrepareOrWaitForSession(bool start_standard_services) {
  if (prepared_ || stopped_)
    return absl::FailedPreconditionError("a Supervisor has one session: make another Supervisor for the next");
  RETURN_IF_ERROR(CheckSessionConfig(options_.config));
  RETURN_IF_ERROR(
      CheckDeviceFilters(options_.config.device_filters, environment_.algorithm->binding(), environment_.place));
  manager_.scaffold().Finalize();
  ASSIGN_OR_RETURN(const int64_t step, is_chief() ? manager_.PrepareSession()
                                                  : manager_.WaitForSession(absl::Seconds(options_.max_wait_secs)));
  {
    const HoldTurn turn(turn_);
    global_step_ = step;
    counted_step_ = step;
  }
  prepared_ = true;
  if (options_.config.log_device_placement) LogDevicePlacement(environment_.algorithm->binding(), environment_.place);
  if (!is_chief() || options_.logdir.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(summaries_, EventFileWriter::Open(*environment_.files, *environment_.clock, options_.logdir, {}));
  RETURN_IF_ERROR(summaries_->AddSessionLog(SessionStatus::kStart, step + 1));
  if (start_standard_services) StartStandardServices();
  return absl::OkStatus();
}

void Supervisor::StartStandardServices() {
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
  start("checkpoint", options_.save_model_secs, &Supervisor::SaveOrGoOn);
}

absl::Status Supervisor::ManagedSession(absl::FunctionRef<absl::Status()> body) {
  absl::Status status = PrepareOrWaitForSession();
  if (status.ok()) status = body();
  if (absl::IsCancelled(status)) status = absl::OkStatus();  // training has ended, or a stop was asked for
  const absl::Status unheard = coordinator_.RequestStop(status);
  absl::Status stopped = Stop();
  stopped.Update(unheard);
  return stopped;
}

absl::StatusOr<StepResult> Supervisor::Run() {
  if (stopped_) return absl::FailedPreconditionError("Attempted to use a closed Session.");
  if (!prepared_) return absl::FailedPreconditionError("call PrepareOrWaitForSession before Run");
  const HoldTurn turn(turn_);
  const bool due = std::exchange(summaries_due_, false);
  const StepSummaries::Scope registering(step_summaries_, due);
  ASSIGN_OR_RETURN(const StepResult result, environment_.algorithm->Step(*environment_.client));
  global_step_ = result.global_step;
  RETURN_IF_ERROR(environment_.algorithm->source().ShowValues());
  if (due) RETURN_IF_ERROR(WriteSummaries(result));
  return result;
}

absl::Status Supervisor::WriteSummaries(const StepResult& result) {
  if (const SummaryOp& summary = manager_.scaffold().options().summary)
    return summaries_->AddSummary(summary(), result.global_step);
  std::string summary;
  AppendScalar(summary, "loss", static_cast<float>(result.loss));
  return summaries_->AddSummary(summary + step_summaries_.MergeAll(), result.global_step);
}

absl::StatusOr<std::string> Supervisor::Save() {
  if (!prepared_ || stopped_ || manager_.saver() == nullptr)
    return absl::FailedPreconditionError(
        "Save needs the chief's session with a logdir, between its start and its stop");
  const HoldTurn turn(turn_);
  ASSIGN_OR_RETURN(std::string path, manager_.saver()->Save());
  RETURN_IF_ERROR(summaries_->AddSessionLog(SessionStatus::kCheckpoint, global_step_, path));
  return path;
}

// What can't be saved now is tried again next time; OutOfRange from a thread would be a clean end of training.
absl::Status Supervisor::SaveOrGoOn() {
  const absl::Status saved = Save().status();
  if (!absl::IsOutOfRange(saved)) return saved;
  LogWarning("no checkpoint: ", saved.message());
  return absl::OkStatus();
}

// What a step registers is made while it runs.
absl::Status Supervisor::AskForSummaries() {
  const HoldTurn turn(turn_);
  summaries_due_ = true;
  return absl::OkStatus();
}

absl::Status Supervisor::CountSteps() {
  const HoldTurn turn(turn_);
  const absl::Time now = environment_.wait_clock->Now();
  const absl::Duration elapsed = now - std::exchange(counted_at_, now);
  const int64_t steps = global_step_ - std::exchange(counted_step_, global_step_);
  if (elapsed == absl::InfiniteDuration() || elapsed <= absl::ZeroDuration()) return absl::OkStatus();
  const double rate = static_cast<double>(steps) / absl::ToDoubleSeconds(elapsed);
  LogInfo("global_step/sec: ", absl::StrFormat("%g", rate));
  return summaries_->AddScalar("global_step/sec", static_cast<float>(rate), global_step_);
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
  if (std::exchange(stopped_, true)) return absl::OkStatus();
  coordinator_.RequestStop();
  absl::Status first_error = coordinator_.Join({.stop_grace_period = absl::Seconds(options_.stop_grace_secs)});
  threads_.clear();
  first_error.Update(EndSession());
  return first_error;
}

absl::Status Supervisor::EndSession() {
  absl::Status first_error;
  if (summaries_) {
    first_error = summaries_->AddSessionLog(SessionStatus::kStop, global_step());
    first_error.Update(summaries_->Close());
  }
  if (!manager_.joined()) return first_error;
  environment_.algorithm->End();
  if (prepared_) first_error.Update(manager_.Settle());
  first_error.Update(environment_.client->Done());
  return first_error;
}

int64_t Supervisor::global_step() const {
  const HoldTurn turn(turn_);
  return global_step_;
}

}  // namespace muster
