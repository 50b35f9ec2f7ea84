#include "muster/train/session/session.h"

#include <algorithm>
#include <cmath>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "muster/algo/sources/with_global_values.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/store/calls/shutdown_wait.h"
#include "muster/train/hook_api/hook_call.h"
#include "muster/train/hooks/hooks.h"
#include "muster/train/saving/lost_steps.h"

namespace muster {

bool RunValues::Find(const std::string& name, double* value) const {
  if (name == "loss") return *value = loss, true;
  if (name == "step" || name == "global_step") return *value = static_cast<double>(global_step), true;
  if (name == "staleness") return *value = static_cast<double>(staleness), true;
  for (const auto& [scalar, scalar_value] : scalars)
    if (scalar == name) return *value = scalar_value, true;
  return false;
}

std::vector<std::string> RunValues::Names() const {
  std::vector<std::string> names = {"loss", "step", "global_step", "staleness"};
  for (const auto& [scalar, value] : scalars)
    if (std::find(names.begin(), names.end(), scalar) == names.end()) names.push_back(scalar);
  return names;
}

namespace {

// A creator's options replace the session's.
SessionOptions Resolve(SessionOptions options) {
  if (!options.creator) return options;
  SessionCreatorOptions own = options.creator->options();
  options.master = std::move(own.master);
  options.checkpoint_dir = std::move(own.checkpoint_dir);
  options.checkpoint_filename_with_path = std::move(own.checkpoint_filename_with_path);
  options.scaffold = std::move(own.scaffold);
  options.config = std::move(own.config);
  options.max_wait_secs = own.max_wait_secs;
  if (options.creator->is_chief()) options.is_chief = options.creator->is_chief();
  return options;
}

std::shared_ptr<SessionCreator> MakeCreator(const SessionOptions& options, bool is_chief) {
  if (options.creator) return options.creator;
  if (is_chief) return std::make_shared<ChiefSessionCreator>();
  return std::make_shared<WorkerSessionCreator>(SessionCreatorOptions{.max_wait_secs = options.max_wait_secs});
}

SessionManagerOptions ManagerOptions(const SessionOptions& options, bool is_chief) {
  return {.is_chief = is_chief,
          .checkpoint_dir = options.checkpoint_dir,
          .checkpoint_filename_with_path = options.checkpoint_filename_with_path,
          .scaffold = options.scaffold,
          .saver = {.keep_checkpoint_max = options.keep_checkpoint_max,
                    .keep_checkpoint_every_n_hours = options.keep_checkpoint_every_n_hours,
                    .allow_older_checkpoint = options.allow_older_checkpoint},
          .saveables = options.saveables,
          .max_wait = absl::Seconds(options.max_wait_secs)};
}

bool HasSaverOptions(const SessionOptions& options) {
  const ScaffoldSaver usual;
  return options.keep_checkpoint_max != usual.keep_checkpoint_max ||
         options.keep_checkpoint_every_n_hours != usual.keep_checkpoint_every_n_hours ||
         options.allow_older_checkpoint != usual.allow_older_checkpoint || !options.saveables.empty();
}

}  // namespace

absl::StatusOr<StepResult> StepContext::Run() { return session_.RunRaw(); }

absl::Status StepContext::RunWithHooks() { return session_.RunHooked(); }

absl::Status StepContext::RequestStop() {
  session_.RequestStop();
  return absl::OutOfRangeError("step_fn has requested the iterations to stop.");
}

Session::Session(SessionEnvironment environment, SessionOptions options,
                 std::vector<std::shared_ptr<SessionHook>> hooks)
    : environment_(std::move(environment)),
      options_(Resolve(std::move(options))),
      is_chief_(options_.is_chief.value_or(environment_.is_chief)),
      creator_(MakeCreator(options_, is_chief_)),
      manager_(environment_, ManagerOptions(options_, is_chief_)),
      watch_(environment_.metrics, *environment_.client, *environment_.clock),
      coordinator_({.clock = environment_.wait_clock}) {
  if (is_chief_) hooks_ = options_.chief_only_hooks;
  if (is_chief_ && options_.default_hooks) AddDefaultHooks();
  num_default_hooks_ = hooks_.size();
  for (auto& hook : hooks) hooks_.push_back(std::move(hook));
}

// Closes the event file even after an error: its summaries are what one wants to look at then.
Session::~Session() {
  StopThreads().IgnoreError();
  if (summaries_) summaries_->Close().IgnoreError();
}

absl::Status Session::CheckOptions() const {
  if (!options_.master.empty() && options_.master != environment_.target)
    return WrongOptionError(absl::StrCat("master is '", options_.master, "'; accepted: empty, or the server's own '",
                                         environment_.target, "'"));
  if (options_.save_checkpoint_secs && options_.save_checkpoint_steps)
    return WrongOptionError("give one of save_checkpoint_secs and save_checkpoint_steps, not both");
  if (options_.save_summaries_secs && options_.save_summaries_steps)
    return WrongOptionError("give one of save_summaries_secs and save_summaries_steps, not both");
  RETURN_IF_ERROR(CheckSaverOptions(manager_.options().saver));
  RETURN_IF_ERROR(CheckWhatIsRestored(manager_.options()));
  if (options_.scaffold && options_.scaffold->options().saver && HasSaverOptions(options_))
    return WrongOptionError(
        "You cannot provide both saver and scaffold: the scaffold has a saver, so keep_checkpoint_max, "
        "keep_checkpoint_every_n_hours, allow_older_checkpoint and saveables belong there");
  RETURN_IF_ERROR(CheckHooks());
  RETURN_IF_ERROR(CheckSessionConfig(options_.config));
  return CheckDeviceFilters(options_.config.device_filters, environment_.algorithm->binding(), environment_.place);
}

absl::Status Session::CheckHooks() const {
  const auto null_hook = [](size_t number, const char* list) {
    return WrongOptionError(absl::StrCat("hook ", number, " of ", list, " is null"));
  };
  const auto& chief_only = options_.chief_only_hooks;
  for (size_t i = 0; i < chief_only.size(); ++i)
    if (chief_only[i] == nullptr) return null_hook(i + 1, "chief_only_hooks");
  for (size_t i = num_default_hooks_; i < hooks_.size(); ++i)
    if (hooks_[i] == nullptr) return null_hook(i - num_default_hooks_ + 1, "the list");
  return absl::OkStatus();
}

absl::Status Session::CheckBetweenSteps(const char* called) const {
  if (!in_step_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(called, " within a step: neither a loss function nor a hook may call it (only RequestStop)"));
}

// In TensorFlow's order: chief-only hooks, step counter, summary saver, checkpoint saver, then the user's hooks.
void Session::AddDefaultHooks() {
  if (options_.log_step_count_steps > 0)
    hooks_.push_back(StepCounter({.every_n_steps = options_.log_step_count_steps}));
  const bool summaries = !options_.summary_dir.empty() || !options_.checkpoint_dir.empty();
  const int64_t summary_steps = options_.save_summaries_steps.value_or(100);
  const SummaryOp& summary = manager_.scaffold().options().summary;
  if (summaries && options_.save_summaries_secs) {
    if (*options_.save_summaries_secs > 0)
      hooks_.push_back(
          SummarySaver({.save_interval = absl::Seconds(*options_.save_summaries_secs), .scaffold_summary = summary}));
  } else if (summaries && summary_steps > 0) {
    hooks_.push_back(SummarySaver({.save_steps = summary_steps, .scaffold_summary = summary}));
  }
  if (options_.checkpoint_dir.empty()) return;
  const double checkpoint_secs = options_.save_checkpoint_secs.value_or(600);
  const absl::Duration patience = absl::Seconds(options_.last_save_patience_secs);
  if (options_.save_checkpoint_steps) {
    if (*options_.save_checkpoint_steps > 0)
      hooks_.push_back(CheckpointSaver({.save_steps = options_.save_checkpoint_steps, .last_save_patience = patience}));
  } else if (checkpoint_secs > 0) {
    hooks_.push_back(
        CheckpointSaver({.save_interval = absl::Seconds(checkpoint_secs), .last_save_patience = patience}));
  }
}

SessionContext Session::MakeContext() {
  return {.is_chief = is_chief_,
          .now = environment_.clock->Now(),
          .global_step = global_step_,
          .saver = saver(),
          .summaries = summaries_.get(),
          .coordinator = &coordinator_,
          .request_stop = [this] { stop_ = true; },
          .stop_requested = environment_.stop_requested,
          .algorithm = environment_.algorithm,
          .client = environment_.client,
          .loop = environment_.loop,
          .files = environment_.files,
          .tracer = environment_.tracer};
}

absl::Status Session::Start() { return LeaveIfInterrupted(StartHooked()); }

absl::Status Session::StartHooked() {
  RETURN_IF_ERROR(CheckOptions());
  if (!options_.creator) WarnOfWrongChief(options_.is_chief, environment_.is_chief, environment_.place.task);
  RETURN_IF_ERROR(CallHooks("Begin", hooks_, [](SessionHook& hook) { return hook.Begin(); }));
  manager_.scaffold().Finalize();
  absl::Status created = Create();
  // A ps was restarted before it had a model, and doesn't know which tasks had joined.
  while (absl::IsAborted(created)) created = Create();
  // Training has ended, or Ctrl-C came while waiting for the chief.
  if (!created.ok()) return EndIfEnded(std::move(created));
  if (options_.config.log_device_placement) LogDevicePlacement(environment_.algorithm->binding(), environment_.place);
  watch_.Is(TrainingState::kTraining);
  absl::Status begun = AfterCreate();
  while (absl::IsAborted(begun) && options_.recovers) begun = Recover(begun);
  RETURN_IF_ERROR(EndIfEnded(begun));
  created_ = begun.ok();
  return absl::OkStatus();
}

// Training that has ended elsewhere is no error: there is nothing more to do.
absl::Status Session::EndIfEnded(absl::Status status) {
  if (!absl::IsCancelled(status) || IsInterrupted(status)) return status;
  LogInfo(status.message());
  stop_ = true;
  return absl::OkStatus();
}

absl::Status Session::Create() {
  ASSIGN_OR_RETURN(global_step_, creator_->CreateSession(manager_));
  return OpenSummaries();
}

absl::Status Session::OpenSummaries() {
  const std::string& directory = options_.summary_dir.empty() ? options_.checkpoint_dir : options_.summary_dir;
  if (!is_chief_ || directory.empty() || summaries_) return absl::OkStatus();
  ASSIGN_OR_RETURN(summaries_, EventFileWriter::Open(*environment_.files, *environment_.clock, directory, {}));
  return absl::OkStatus();
}

absl::Status Session::AfterCreate() {
  in_step_ = true;
  const absl::Cleanup out_of_step = [this] { in_step_ = false; };
  const SessionContext context = MakeContext();
  return CallHooks("AfterCreateSession", hooks_,
                   [&context](SessionHook& hook) { return hook.AfterCreateSession(context); });
}

absl::Status Session::Run() {
  return RunStepFn([](StepContext& context) { return context.RunWithHooks(); });
}

absl::Status Session::RunStepFn(absl::FunctionRef<absl::Status(StepContext&)> step_fn) {
  RETURN_IF_ERROR(CheckBetweenSteps("Run"));
  if (closed_) return absl::FailedPreconditionError("Attempted to use a closed Session.");
  // A signal that came after the caller's ShouldStop is no mistake of the caller: one more step is run.
  if (stop_) return absl::FailedPreconditionError("Run called even after should_stop requested.");
  absl::Status status = CallStepFn(step_fn);
  while (absl::IsAborted(status) && options_.recovers) {
    LogWarning(status.message());
    status = Recover(status);
    if (status.ok() && !stop_) status = CallStepFn(step_fn);
  }
  if (absl::IsUnavailable(status) && !environment_.algorithm->trains_on_ps())
    status = NamingLostSteps(status, *environment_.files, options_.checkpoint_dir, global_step_, is_chief_);
  if (status.ok() && !environment_.algorithm->busy()) status = ObeyLoadRequest();
  if (!absl::IsOutOfRange(status)) return LeaveIfInterrupted(EndIfEnded(std::move(status)));
  LogInfo(status.message());
  stop_ = true;
  return absl::OkStatus();
}

// A thread's failure is the run's error, as in TensorFlow: training without the thread may run for ever. If a thread
// has lost the model, its error replaces the step's error, and counts even before a step notices the loss.
absl::Status Session::CallStepFn(absl::FunctionRef<absl::Status(StepContext&)> step_fn) {
  if (absl::Status failed = coordinator_.requested_error(); !failed.ok()) return failed;
  StepContext context(*this);
  absl::Status status = step_fn(context);
  return !status.ok() && ThreadLostModel() ? coordinator_.requested_error() : status;
}

bool Session::ThreadLostModel() const { return options_.recovers && absl::IsAborted(coordinator_.requested_error()); }

absl::StatusOr<StepResult> Session::RunRaw() {
  RETURN_IF_ERROR(CheckBetweenSteps("Run"));
  if (closed_) return absl::FailedPreconditionError("Attempted to use a closed Session.");
  if (!created_) return absl::FailedPreconditionError("there is no session: Start failed, or training had ended");
  in_step_ = true;
  const absl::Cleanup out_of_step = [this] { in_step_ = false; };
  feeds_ = {};
  const StepSummaries::Scope registering(step_summaries_, /*wanted=*/false);
  return Step();
}

absl::Status Session::Fetch(absl::FunctionRef<absl::Status()> fetch) {
  RETURN_IF_ERROR(CheckBetweenSteps("Fetch"));
  return RunStepFn([this, fetch](StepContext&) { return FetchHooked(fetch); });
}

absl::Status Session::FetchRaw(absl::FunctionRef<absl::Status()> fetch) {
  RETURN_IF_ERROR(CheckBetweenSteps("Fetch"));
  if (closed_) return absl::FailedPreconditionError("Attempted to use a closed Session.");
  if (!created_) return absl::FailedPreconditionError("there is no session: Start failed, or training had ended");
  if (environment_.algorithm->busy()) RETURN_IF_ERROR(manager_.FinishPending());
  in_step_ = true;
  const absl::Cleanup out_of_step = [this] { in_step_ = false; };
  feeds_ = {};
  const StepSummaries::Scope registering(step_summaries_, /*wanted=*/false);
  RETURN_IF_ERROR(WithGlobalValues(*environment_.client, environment_.algorithm->source(), fetch));
  global_step_ = environment_.client->global_step();
  return absl::OkStatus();
}

absl::Status Session::FetchHooked(absl::FunctionRef<absl::Status()> fetch) {
  RETURN_IF_ERROR(CheckBetweenSteps("Fetch"));
  if (stop_) return absl::FailedPreconditionError("Run called even after should_stop requested.");
  RETURN_IF_ERROR(FetchRaw(fetch));
  in_step_ = true;
  const absl::Cleanup out_of_step = [this] { in_step_ = false; };
  RunContext context(MakeContext());
  RETURN_IF_ERROR(CallHooks("AfterFetch", hooks_, [&context](SessionHook& hook) { return hook.AfterFetch(context); }));
  if (context.stop_requested()) stop_ = true;
  return absl::OkStatus();
}

absl::StatusOr<StepResult> Session::Step() {
  ASSIGN_OR_RETURN(const StepResult result, environment_.algorithm->Step(*environment_.client));
  global_step_ = result.global_step;
  last_loss_ = result.loss;
  ran_ = true;
  watch_.Count(result, saver());
  RETURN_IF_ERROR(environment_.algorithm->source().ShowValues());
  return result;
}

// Handles a ps that is gone after a stop was requested: the hooks' End needs all ps, and the remaining ps must not wait
// for this task. Always returns `status`.
absl::Status Session::LeaveIfInterrupted(absl::Status status) {
  if (!IsInterrupted(status)) return status;
  if (!std::exchange(closed_, true)) environment_.algorithm->End();
  if (summaries_) summaries_->Close().IgnoreError();
  if (saver() != nullptr)
    LogWarning("the last steps may be in no checkpoint; the newest is ",
               last_checkpoint().empty() ? "none" : last_checkpoint());
  environment_.client->Done().IgnoreError();
  watch_.Is(TrainingState::kEnded);
  return status;
}

// Somebody may have asked ps 0 to load another checkpoint (`muster checkpoint load`). Errors of the request are
// reported to them.
absl::Status Session::ObeyLoadRequest() {
  StoreClient& client = *environment_.client;
  const std::string path = client.TakeLoadRequest();
  if (path.empty()) return absl::OkStatus();
  const absl::Status restored = Load(path);
  if (IsInterrupted(restored)) return restored;
  if (!restored.ok()) LogWarning("could not load ", path, ": ", restored.message());
  return client.ReportLoad(restored.ok() ? absl::StatusOr<int64_t>(global_step_) : restored);
}

absl::Status Session::Restore(const std::string& path) {
  RETURN_IF_ERROR(CheckBetweenSteps("Restore"));
  if (closed_) return absl::FailedPreconditionError("Attempted to use a closed Session.");
  return LeaveIfInterrupted(Load(path));
}

absl::Status Session::Load(const std::string& path) {
  if (!is_chief_ || !created_)
    return absl::FailedPreconditionError("only the chief's session, once it is started, loads checkpoints");
  if (environment_.own_store && !environment_.algorithm->trains_on_ps())
    return absl::FailedPreconditionError(
        "without ps a checkpoint is loaded when training starts: end this run, and start it with that checkpoint as "
        "the newest of checkpoint_dir");
  const WorkerProgress::Busy busy = Busy("loading a checkpoint");
  ASSIGN_OR_RETURN(const int64_t step, manager_.Load(path));
  LogWarning("going on from global step ", step, "; it was ", global_step_);
  global_step_ = step;
  return absl::OkStatus();
}

absl::Status Session::RunHooked() {
  RETURN_IF_ERROR(CheckBetweenSteps("Run"));
  if (stop_) return absl::FailedPreconditionError("Run called even after should_stop requested.");
  in_step_ = true;
  const absl::Cleanup out_of_step = [this] { in_step_ = false; };
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
    RETURN_IF_ERROR(CallHooks("BeforeRun", hooks_, [&context](SessionHook& hook) { return hook.BeforeRun(context); }));
  }
  const StepSummaries::Scope registering(step_summaries_, context.summaries_wanted());
  ASSIGN_OR_RETURN(const StepResult result, RunAlgorithm(context));
  const Track::Span hooks(track, Activity::kHooks);
  context.MoveTo(global_step_, environment_.clock->Now());
  const RunValues values{result.loss, result.global_step, result.staleness, step_summaries_.scalars(),
                         &step_summaries_};
  RETURN_IF_ERROR(CallHooks("AfterRun", hooks_, [&](SessionHook& hook) { return hook.AfterRun(context, values); }));
  if (context.stop_requested()) stop_ = true;
  return absl::OkStatus();
}

absl::StatusOr<StepResult> Session::RunAlgorithm(RunContext& context) {
  feeds_ = context.TakeFeeds();
  GradientTap& tap = environment_.algorithm->gradient_tap();
  tap.Observe(context.gradient_observers());
  const absl::Cleanup nobody_looks = [&tap] { tap.Observe({}); };  // also when the step throws
  return Step();
}

// A ps has lost the model, or another checkpoint's values were loaded: all tasks join again, the chief prepares the
// model, the others wait for it. The interrupted step is run again with the new values.
absl::Status Session::Recover(const absl::Status& cause) {
  const int64_t was_at = global_step_;
  manager_.LoseModel(cause);
  const absl::Status threads = StopThreads();
  if (!threads.ok() && !absl::IsAborted(threads)) return threads;
  RETURN_IF_ERROR(coordinator_.ClearStop());
  RETURN_IF_ERROR(Create());
  if (is_chief_)
    LogWarning("going on from global step ", global_step_, "; ", std::max<int64_t>(0, was_at - global_step_),
               " steps are lost");
  return AfterCreate();
}

absl::Status Session::StopThreads() {
  coordinator_.RequestStop();
  return coordinator_.Join(
      {.stop_grace_period = absl::Seconds(options_.stop_grace_period_secs), .ignore_live_threads = true});
}

absl::Status Session::Close() {
  RETURN_IF_ERROR(CheckBetweenSteps("Close"));
  if (std::exchange(closed_, true)) return absl::OkStatus();
  if (!manager_.joined()) return LeavesTraining(environment_) ? LeftTraining() : absl::OkStatus();
  stop_ = true;
  environment_.algorithm->End();
  // Whatever fails here, the ps must still hear that this task is done: they would wait for it otherwise.
  absl::Status first_error = created_ ? manager_.FinishPending() : absl::OkStatus();
  global_step_ = std::max(global_step_, environment_.client->global_step());  // a last window may have been committed
  const bool clean = !IsInterrupted(first_error) && coordinator_.requested_error().ok();
  if (created_ && clean) first_error.Update(EndHooks());
  const absl::Status threads = StopThreads();
  if (IsInterrupted(first_error)) return LeaveIfInterrupted(std::move(first_error));
  first_error.Update(threads);
  if (ran_) LogInfo("Loss for final step: ", absl::StrFormat("%g", last_loss_), ".");
  if (ran_ && std::isnan(last_loss_))
    LogWarning(
        "the loss is NaN: what was trained since it became so is worthless, and the last checkpoint may be; "
        "NanTensor ends training at the first NaN");
  first_error.Update(LeavesTraining(environment_) ? LeftTraining() : environment_.client->Done());
  watch_.Is(TrainingState::kEnded);
  return first_error;
}

// The last checkpoint must carry the ps's current step, which other workers may have moved since our last run.
absl::Status Session::EndHooks() {
  absl::Status first_error;
  if (is_chief_ && saver() != nullptr) {
    const absl::StatusOr<int64_t> step = environment_.client->ReadGlobalStep();
    if (step.ok()) global_step_ = *step;
    first_error = step.status();
  }
  const SessionContext context = MakeContext();
  if (first_error.ok())
    for (auto& hook : hooks_)
      first_error.Update(CallHook("End", *hook, [&context](SessionHook& h) { return h.End(context); }));
  if (summaries_) first_error.Update(summaries_->Close());
  return first_error;
}

}  // namespace muster
