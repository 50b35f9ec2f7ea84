#include "muster/train/hooks/profiler.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/observe/tracer.h"
#include "muster/train/hooks/timer_options.h"

namespace muster {
namespace {

class ProfilerHook final : public SessionHook {
 public:
  explicit ProfilerHook(const ProfilerOptions& options)
      : options_(options),
        timer_(MakeTimer("Profiler", options.save_steps, options.save_interval, "save_steps and save_interval")) {}

  absl::Status Begin() override {
    if (!range()) return timer_.status();
    if (options_.save_steps || options_.save_interval)
      return WrongOptionError("Profiler: give either first_step and last_step, or one of save_steps and save_interval");
    if (options_.first_step && options_.last_step && 1 <= *options_.first_step &&
        *options_.first_step <= *options_.last_step)
      return absl::OkStatus();
    return WrongOptionError(
        "Profiler: first_step and last_step belong together; accepted: 1 <= first_step <= last_step");
  }
  absl::Status AfterCreateSession(const SessionContext& session) override {
    if (claim_ != nullptr) return absl::OkStatus();  // a recovery
    if (session.tracer == nullptr) return absl::FailedPreconditionError("Profiler: this session records nothing");
    auto claim = session.tracer->ClaimCapture();
    if (!claim.ok())
      return absl::FailedPreconditionError(
          absl::StrCat("a session has one Profiler at most: ", claim.status().message()));
    claim_ = *std::move(claim);
    return absl::OkStatus();
  }
  absl::Status BeforeRun(RunContext& context) override {
    const SessionContext& session = context.session();
    // Only now is the previous step over, with everything its hooks did.
    if (recording_ && complete_) RETURN_IF_ERROR(Save(session));
    if (!recording_ && Wanted(session)) {
      session.tracer->BeginCapture();
      recording_ = true;
      first_recorded_ = -1;
    }
    return absl::OkStatus();
  }
  absl::Status AfterRun(RunContext& context, const RunValues& values) override {
    const SessionContext& session = context.session();
    if (!recording_) {
      if (!range() && !timer_->last_triggered_step()) timer_->UpdateLastTriggered(values.global_step, session.now);
      return absl::OkStatus();
    }
    session.tracer->Flush();
    if (first_recorded_ < 0) first_recorded_ = values.global_step;
    last_recorded_ = values.global_step;
    complete_ = !range() || values.global_step >= *options_.last_step;
    if (!range()) timer_->UpdateLastTriggered(values.global_step, session.now);
    return absl::OkStatus();
  }
  absl::Status End(const SessionContext& session) override {
    absl::Status saved = recording_ && first_recorded_ >= 0 ? Save(session) : absl::OkStatus();
    claim_.reset();
    return saved;
  }

 private:
  bool range() const { return options_.first_step.has_value() || options_.last_step.has_value(); }
  // Whether the run that is about to begin shall be recorded.
  bool Wanted(const SessionContext& session) const {
    const int64_t next = session.global_step + 1;
    if (range()) return *options_.first_step <= next && next <= *options_.last_step;
    return timer_->last_triggered_step() && timer_->ShouldTriggerForStep(next, session.now);
  }
  absl::Status Save(const SessionContext& session) {
    recording_ = complete_ = false;
    const std::string trace = session.tracer->EndCapture();
    const std::string path =
        JoinPath(options_.output_dir, range() ? absl::StrCat("timeline-", first_recorded_, "-", last_recorded_, ".json")
                                              : absl::StrCat("timeline-", last_recorded_, ".json"));
    LogInfo("Saving timeline for ", last_recorded_, " into '", path, "'.");
    if (!options_.output_dir.empty()) RETURN_IF_ERROR(session.files->CreateDirectory(options_.output_dir));
    return WriteFileAtomically(*session.files, path, AsBytes(trace.data(), trace.size()));
  }

  const ProfilerOptions options_;
  absl::StatusOr<SecondOrStepTimer> timer_;  // an error if a range of steps is given
  std::shared_ptr<const void> claim_;
  bool recording_ = false;
  bool complete_ = false;  // everything requested is recorded, but not saved
  int64_t first_recorded_ = -1;
  int64_t last_recorded_ = -1;
};

}  // namespace

std::shared_ptr<SessionHook> Profiler(const ProfilerOptions& options) {
  return std::make_shared<ProfilerHook>(options);
}

}  // namespace muster
