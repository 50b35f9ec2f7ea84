#include "muster/train/session.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/store/last_wait.h"
#include "muster/train/hooks.h"
#include "muster/train/lost_steps.h"

namespace muster {

bool RunValues::Find(const std::string& name, double* value) const {
  if (name == "loss") return *value = loss, true;
  if (name == "step" || name == "global_step") return *value = static_cast<double>(global_step), true;
  if (name == "staleness") return *value = static_cast<double>(staleness), true;
  for (const auto& [scalar, scalar_value] : scalars)
    if (scalar == name) return *value = scalar_value, true;
  return false;
}

Session::Session(SessionEnvironment environment, SessionOptions options,
                 std::vector<std::shared_ptr<SessionHook>> hooks)
    : environment_(std::move(environment)),
      options_(std::move(options)),
      is_chief_(options_.is_chief.value_or(environment_.is_chief)),
      watch_(environment_.metrics, *environment_.client, *environment_.clock) {
  if (is_chief_) hooks_ = options_.chief_only_hooks;
  if (is_chief_) AddDefaultHooks();
  for (auto& hook : hooks) hooks_.push_back(std::move(hook));
}

Session::~Session() = default;

absl::Status Session::CheckOptions() const {
  if (!options_.master.empty() && options_.master != environment_.target)
    return absl::InvalidArgumentError(absl::StrCat(
        "master is '", options_.master, "'; accepted: empty, or the server's own '", environment_.target, "'"));
  if (options_.save_checkpoint_secs && options_.save_checkpoint_steps)
    return absl::InvalidArgumentError("give one of save_checkpoint_secs and save_checkpoint_steps, not both");
  if (options_.save_summaries_secs && options_.save_summaries_steps)
    return absl::InvalidArgumentError("give one of save_summaries_secs and save_summaries_steps, not both");
  if (!(options_.keep_checkpoint_every_n_hours > 0))
    return absl::InvalidArgumentError(absl::StrCat("keep_checkpoint_every_n_hours is ",
                                                   options_.keep_checkpoint_every_n_hours, "; accepted: more than 0"));
  return absl::OkStatus();
}

// In TensorFlow's order: chief-only hooks, step counter, summary saver, checkpoint saver, then the user's hooks.
void Session::AddDefaultHooks() {
  if (options_.log_step_count_steps > 0)
    hooks_.push_back(StepCounter({.every_n_steps = options_.log_step_count_steps}));
  const bool summaries = !options_.summary_dir.empty() || !options_.checkpoint_dir.empty();
  const int64_t summary_steps = options_.save_summaries_steps.value_or(100);
  if (summaries && options_.save_summaries_secs) {
    if (*options_.save_summaries_secs > 0)
      hooks_.push_back(SummarySaver({.save_interval = absl::Seconds(*options_.save_summaries_secs)}));
  } else if (summaries && summary_steps > 0) {
    hooks_.push_back(SummarySaver({.save_steps = summary_steps}));
  }
  if (options_.checkpoint_dir.empty()) return;
  const double checkpoint_secs = options_.save_checkpoint_secs.value_or(600);
  if (options_.save_checkpoint_steps) {
    if (*options_.save_checkpoint_steps > 0)
      hooks_.push_back(CheckpointSaver({.save_steps = options_.save_checkpoint_steps}));
  } else if (checkpoint_secs > 0) {
    hooks_.push_back(CheckpointSaver({.save_interval = absl::Seconds(checkpoint_secs)}));
  }
}

SessionContext Session::MakeContext() {
  return {.is_chief = is_chief_,
          .now = environment_.clock->Now(),
          .global_step = global_step_,
          .saver = saver_.get(),
          .summaries = summaries_.get(),
          .request_stop = [this] { stop_ = true; }};
}

absl::Status Session::Start() { return LeaveIfInterrupted(StartHooked()); }

absl::Status Session::StartHooked() {
  RETURN_IF_ERROR(CheckOptions());
  for (auto& hook : hooks_) RETURN_IF_ERROR(hook->Begin());
  absl::Status created = Create();
  // A ps was restarted before it had a model, and doesn't know who had joined.
  while (absl::IsAborted(created)) created = Create();
  // Training that has ended, or a Ctrl-C while waiting for the chief: nothing to do, and no error.
  if (absl::IsCancelled(created) && !IsInterrupted(created)) {
    LogInfo(created.message());
    stop_ = true;
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(created);
  created_ = true;
  watch_.Is(TrainingState::kTraining);
  const SessionContext context = MakeContext();
  for (auto& hook : hooks_) RETURN_IF_ERROR(hook->AfterCreateSession(context));
  return absl::OkStatus();
}

absl::Status Session::Create() {
  StoreClient& client = *environment_.client;
  const absl::Status joined = client.Join(is_chief_ || environment_.own_store);
  joined_ = joined_ || absl::IsCancelled(joined);  // some ps may know of it
  RETURN_IF_ERROR(joined);
  if (client.ended()) return absl::CancelledError("training has already ended");
  joined_ = true;
  environment_.on_joined();
  client.Bind(environment_.algorithm->binding());
  if (is_chief_) RETURN_IF_ERROR(InitializeOrRestore());
  RETURN_IF_ERROR(environment_.algorithm->ShareModel(client));
  if (!is_chief_ && !environment_.own_store && !client.ready())
    LogInfo("Waiting for the chief to initialise the model.");
  ASSIGN_OR_RETURN(global_step_, client.AwaitReady(environment_.clock->Now() + absl::Seconds(options_.max_wait_secs)));
  environment_.algorithm->Begin(client);
  return client.Pull(PullWhat::kEverything);
}

absl::Status Session::InitializeOrRestore() {
  StoreClient& client = *environment_.client;
  if (!options_.checkpoint_dir.empty() && !saver_) {
    RETURN_IF_ERROR(environment_.files->CreateDirectory(options_.checkpoint_dir));
    saver_ =
        std::make_unique<Saver>(*environment_.files, *environment_.loop, client, options_.checkpoint_dir,
                                SaverOptions{.keep_checkpoint_max = options_.keep_checkpoint_max,
                                             .keep_checkpoint_every_n_hours = options_.keep_checkpoint_every_n_hours,
                                             .allow_older_checkpoint = options_.allow_older_checkpoint,
                                             .settle = [this] { return Settle(); }});
    for (const Saveable& saveable : options_.saveables) saver_->Add(saveable);
  }
  if (options_.checkpoint_dir.empty() && !environment_.algorithm->trains_on_ps() && !environment_.target.empty())
    LogWarning("without ps and without a checkpoint_dir all steps are lost when a worker dies");
  const std::string& summary_dir = options_.summary_dir.empty() ? options_.checkpoint_dir : options_.summary_dir;
  if (!summary_dir.empty() && !summaries_) {
    ASSIGN_OR_RETURN(summaries_, EventFileWriter::Open(*environment_.files, *environment_.clock, summary_dir, {}));
  }
  if (client.ready()) {
    LogInfo("The ps hold the model already: going on with it.");
    return absl::OkStatus();
  }
  if (saver_) {
    ASSIGN_OR_RETURN(const std::optional<int64_t> restored,
                     saver_->RestoreLatest(created_ ? Saver::Saveables::kLeave : Saver::Saveables::kRestore));
    if (restored) return absl::OkStatus();
  }
  if (!recovering_from_.ok())
    return absl::UnavailableError(absl::StrCat(recovering_from_.message(),
                                               "; there is no checkpoint to go on from: give the session a "
                                               "checkpoint_dir"));
  return client.Initialize(/*global_step=*/0, /*minibatches=*/0, nullptr);
}

absl::Status Session::Run() {
  // A signal that came after the caller's ShouldStop is no mistake of the caller: one more step is run.
  if (stop_) return absl::FailedPreconditionError("Run called even after should_stop requested.");
  absl::Status status = RunHooked();
  while (absl::IsAborted(status)) {
    LogWarning(status.message());
    status = Recover(status);
    if (status.ok() && !stop_) status = RunHooked();
  }
  if (absl::IsUnavailable(status) && !environment_.algorithm->trains_on_ps())
    status = NamingLostSteps(status, *environment_.files, options_.checkpoint_dir, global_step_, is_chief_);
  if (status.ok() && !environment_.algorithm->busy()) status = ObeyLoadRequest();
  if (!absl::IsCancelled(status) || IsInterrupted(status)) return LeaveIfInterrupted(std::move(status));
  LogInfo(status.message());
  stop_ = true;
  return absl::OkStatus();
}

// A ps that is gone after a stop was asked for: the hooks' End needs all ps, and those that are left must not wait for
// this task. Gives back `status`, whatever it is.
absl::Status Session::LeaveIfInterrupted(absl::Status status) {
  if (!IsInterrupted(status)) return status;
  if (!std::exchange(closed_, true)) environment_.algorithm->End();
  if (summaries_) summaries_->Close().IgnoreError();
  if (saver_)
    LogWarning("the last steps may be in no checkpoint; the newest is ",
               last_checkpoint().empty() ? "none" : last_checkpoint());
  environment_.client->Done().IgnoreError();
  watch_.Is(TrainingState::kEnded);
  return status;
}

// Somebody may have asked ps 0 for another checkpoint (`muster checkpoint load`). Its mistakes are told to him.
absl::Status Session::ObeyLoadRequest() {
  StoreClient& client = *environment_.client;
  const std::string path = client.TakeLoadRequest();
  if (path.empty()) return absl::OkStatus();
  const absl::Status restored = Load(path);
  if (IsInterrupted(restored)) return restored;
  if (!restored.ok()) LogWarning("could not load ", path, ": ", restored.message());
  return client.ReportLoad(restored.ok() ? absl::StatusOr<int64_t>(global_step_) : restored);
}

absl::Status Session::Restore(const std::string& path) { return LeaveIfInterrupted(Load(path)); }

absl::Status Session::Load(const std::string& path) {
  if (!is_chief_ || !created_)
    return absl::FailedPreconditionError("only the chief's session, once it is started, loads checkpoints");
  if (environment_.own_store && !environment_.algorithm->trains_on_ps())
    return absl::FailedPreconditionError(
        "without ps a checkpoint is loaded when training starts: end this run, and start it with that checkpoint as "
        "the "
        "newest of checkpoint_dir");
  StoreClient& client = *environment_.client;
  RETURN_IF_ERROR(Settle());
  Saver reader(*environment_.files, *environment_.loop, client, /*directory=*/"", {});
  Saver& saver = saver_ ? *saver_ : reader;
  ASSIGN_OR_RETURN(const int64_t step, saver.Restore(path, Saver::Saveables::kLeave));
  LogWarning("going on from global step ", step, "; it was ", global_step_);
  ASSIGN_OR_RETURN(global_step_, client.AwaitReady(environment_.clock->Now() + absl::Seconds(options_.max_wait_secs)));
  return client.Pull(PullWhat::kEverything);
}

absl::Status Session::RunHooked() {
  Track* const track = environment_.client->track();
  Track::StepScope step(track, global_step_);
  absl::Status status = RunStep(track);
  if (!status.ok()) step.GiveUp();
  return status;
}

absl::Status Session::RunStep(Track* track) {
  RunContext context(MakeContext());
  {
    const Track::Span hooks(track, Activity::kHooks);
    for (auto& hook : hooks_) RETURN_IF_ERROR(hook->BeforeRun(context));
  }
  const StepSummaries::Scope registering(step_summaries_, context.summaries_wanted());
  ASSIGN_OR_RETURN(const StepResult result, environment_.algorithm->Step(*environment_.client));
  global_step_ = result.global_step;
  last_loss_ = result.loss;
  ran_ = true;
  watch_.Count(result, last_checkpoint());
  const Track::Span hooks(track, Activity::kHooks);
  RunContext after(MakeContext());
  const RunValues values{result.loss, result.global_step, result.staleness, step_summaries_.scalars(),
                         &step_summaries_};
  for (auto& hook : hooks_) RETURN_IF_ERROR(hook->AfterRun(after, values));
  if (context.stop_requested() || after.stop_requested()) stop_ = true;
  return absl::OkStatus();
}

// A ps has lost the model, or another one's values were loaded: everyone joins again, the chief sees to the model, the
// others wait for it. The step that was under way is run again with the new values.
absl::Status Session::Recover(const absl::Status& cause) {
  const int64_t was_at = global_step_;
  recovering_from_ = cause;
  RETURN_IF_ERROR(Create());
  if (is_chief_)
    LogWarning("going on from global step ", global_step_, "; ", std::max<int64_t>(0, was_at - global_step_),
               " steps are lost");
  const SessionContext context = MakeContext();
  for (auto& hook : hooks_) RETURN_IF_ERROR(hook->AfterCreateSession(context));
  return absl::OkStatus();
}

absl::Status Session::Close() {
  if (std::exchange(closed_, true) || !joined_) return absl::OkStatus();
  stop_ = true;
  environment_.algorithm->End();
  // Whatever fails here, the ps must still hear that this task is done: they would wait for it otherwise.
  absl::Status first_error = created_ ? Settle() : absl::OkStatus();
  if (created_ && !IsInterrupted(first_error)) first_error.Update(EndHooks());
  if (IsInterrupted(first_error)) return LeaveIfInterrupted(std::move(first_error));
  if (ran_) LogInfo("Loss for final step: ", absl::StrFormat("%g", last_loss_), ".");
  first_error.Update(environment_.client->Done());
  watch_.Is(TrainingState::kEnded);
  return first_error;
}

// Training that has ended or was shut down meanwhile is no error: nothing is counted any more.
absl::Status Session::Settle() {
  const absl::Status settled = environment_.algorithm->Settle(*environment_.client);
  return absl::IsCancelled(settled) && !IsInterrupted(settled) ? absl::OkStatus() : settled;
}

absl::Status Session::ReadGlobalStep() {
  ASSIGN_OR_RETURN(global_step_, environment_.client->ReadGlobalStep());
  return absl::OkStatus();
}

absl::Status Session::EndHooks() {
  // The last checkpoint carries the step that the ps are at, which other workers may have moved since our last run.
  absl::Status first_error = is_chief_ && saver_ ? ReadGlobalStep() : absl::OkStatus();
  const SessionContext context = MakeContext();
  if (first_error.ok())
    for (auto& hook : hooks_) first_error.Update(hook->End(context));
  if (summaries_) first_error.Update(summaries_->Close());
  return first_error;
}

}  // namespace muster
