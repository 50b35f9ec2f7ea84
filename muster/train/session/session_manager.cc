#include "muster/train/session/session_manager.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/base/wait_notices.h"
#include "muster/base/wrong_configuration.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/store/calls/shutdown_wait.h"

namespace muster {
namespace {

// The chief's values arrive without polling. Other things that a program waits for are polled this often. (TensorFlow:
// 30 s.)
constexpr absl::Duration kReadyPoll = absl::Milliseconds(200);
constexpr absl::Duration kBeforeFirstNotice = absl::Seconds(10);

SessionManagerOptions Complete(SessionManagerOptions options) {
  if (!options.scaffold) options.scaffold = std::make_shared<Scaffold>();
  return options;
}

absl::Status RunIfGiven(const std::function<absl::Status()>& function) {
  return function ? function() : absl::OkStatus();
}

}  // namespace

absl::Status CheckWhatIsRestored(const SessionManagerOptions& options) {
  if (options.checkpoint_dir.empty() || options.checkpoint_filename_with_path.empty()) return absl::OkStatus();
  return WrongOptionError(absl::StrCat("give one of checkpoint_dir ('", options.checkpoint_dir,
                                       "') and checkpoint_filename_with_path ('", options.checkpoint_filename_with_path,
                                       "'), not both"));
}

SessionManager::SessionManager(SessionEnvironment environment, SessionManagerOptions options)
    : environment_(std::move(environment)), options_(Complete(std::move(options))) {}

absl::StatusOr<int64_t> SessionManager::PrepareSession() {
  RETURN_IF_ERROR(Join());
  ASSIGN_OR_RETURN(const bool has_model, HasModel());
  if (!has_model) RETURN_IF_ERROR(Initialize());
  return FetchModel(environment_.loop->Now() + options_.max_wait);
}

absl::StatusOr<std::optional<int64_t>> SessionManager::RecoverSession() {
  RETURN_IF_ERROR(Join());
  ASSIGN_OR_RETURN(const bool has_model, HasModel());
  if (!has_model) return std::nullopt;
  ASSIGN_OR_RETURN(const int64_t step, FetchModel(environment_.loop->Now() + options_.max_wait));
  return step;
}

absl::StatusOr<int64_t> SessionManager::WaitForSession(absl::Duration max_wait) {
  RETURN_IF_ERROR(Join());
  if (!environment_.own_store && !environment_.client->ready())
    LogInfo("Waiting for the chief to initialise the model.");
  const absl::Time deadline = environment_.loop->Now() + max_wait;
  absl::StatusOr<int64_t> step = FetchModel(deadline);
  // The ps are alive: they held back the answer for as long as they were asked to.
  const bool in_vain = absl::IsUnavailable(step.status()) && environment_.loop->Now() >= deadline;
  if (!in_vain) return step;
  return absl::DeadlineExceededError(absl::StrCat("Session was not ready after waiting ",
                                                  absl::ToInt64Seconds(max_wait), " secs: ", step.status().message()));
}

absl::Status SessionManager::Join() {
  StoreClient& client = *environment_.client;
  const absl::Status joined = client.Join(options_.is_chief || environment_.own_store);
  joined_ = joined_ || absl::IsCancelled(joined);
  RETURN_IF_ERROR(joined);
  if (client.ended()) return absl::CancelledError("training has already ended");
  joined_ = true;
  environment_.on_joined();
  client.Bind(environment_.algorithm->binding());
  return absl::OkStatus();
}

absl::Status SessionManager::OpenSaver() {
  RETURN_IF_ERROR(CheckWhatIsRestored(options_));
  if (options_.checkpoint_dir.empty() && !environment_.algorithm->trains_on_ps() && !environment_.place.peers.empty())
    LogWarning("without ps and without a checkpoint_dir all steps are lost when a worker dies");
  if (options_.checkpoint_dir.empty() || saver_) return absl::OkStatus();
  RETURN_IF_ERROR(environment_.files->CreateDirectory(options_.checkpoint_dir));
  ASSIGN_OR_RETURN(saver_, NewSaver(options_.checkpoint_dir));
  return absl::OkStatus();
}

// Makes a saver with everything that checkpoints keep.
absl::StatusOr<std::unique_ptr<Saver>> SessionManager::NewSaver(const std::string& directory) {
  SaverOptions options = options_.saver;
  std::vector<Saveable> saveables = options_.saveables;
  if (const std::optional<ScaffoldSaver>& own = scaffold().options().saver) {
    options = {.keep_checkpoint_max = own->keep_checkpoint_max,
               .keep_checkpoint_every_n_hours = own->keep_checkpoint_every_n_hours,
               .allow_older_checkpoint = own->allow_older_checkpoint};
    saveables = own->saveables;
  }
  RETURN_IF_ERROR(CheckSaverOptions(options));
  options.finish_pending = [this] { return FinishPending(); };
  auto saver = std::make_unique<Saver>(*environment_.files, *environment_.loop, *environment_.client, directory,
                                       std::move(options));
  for (const Saveable& saveable : environment_.saveables) saver->Add(saveable);
  for (Saveable& saveable : saveables) saver->Add(std::move(saveable));
  return saver;
}

// Whether the ps hold a model, their own or one restored now.
absl::StatusOr<bool> SessionManager::HasModel() {
  RETURN_IF_ERROR(OpenSaver());
  if (saver_ && !environment_.own_store) RETURN_IF_ERROR(saver_->SayWhoSeesTheDirectory());
  const std::string& named = options_.checkpoint_filename_with_path;
  if (environment_.client->ready()) {
    LogInfo("The ps hold the model already: going on with it",
            named.empty() ? "." : absl::StrCat(", not from ", named, "."));
    return true;
  }
  const auto saveables = was_ready_ ? Saver::Saveables::kLeave : Saver::Saveables::kRestore;
  if (!named.empty()) {
    RETURN_IF_ERROR(RestoreNamed(saveables));
    return true;
  }
  if (!saver_) return false;
  ASSIGN_OR_RETURN(const std::optional<int64_t> restored, saver_->RestoreLatest(saveables));
  return restored.has_value();
}

absl::Status SessionManager::RestoreNamed(Saver::Saveables saveables) {
  const std::string& path = options_.checkpoint_filename_with_path;
  const std::string manifest = absl::StrCat(absl::StripSuffix(path, kManifestSuffix), kManifestSuffix);
  if (!environment_.files->Exists(manifest))
    return AsWrongConfiguration(absl::NotFoundError(
        absl::StrCat("checkpoint_filename_with_path is '", path, "': there is no such checkpoint, as there is no file ",
                     manifest, "; give a path like model_dir/model.ckpt-100")));
  ASSIGN_OR_RETURN(const std::unique_ptr<Saver> reader, NewSaver(/*directory=*/""));
  return reader->Restore(path, saveables).status();
}

absl::Status SessionManager::Initialize() {
  if (!lost_because_.ok())
    return absl::UnavailableError(absl::StrCat(lost_because_.message(),
                                               "; there is no checkpoint to go on from: give the session a "
                                               "checkpoint_dir"));
  RETURN_IF_ERROR(RunIfGiven(scaffold().options().init));
  RETURN_IF_ERROR(RunIfGiven(scaffold().options().init_fn));
  return environment_.client->Initialize(/*global_step=*/0, /*minibatches=*/0, nullptr);
}

absl::StatusOr<int64_t> SessionManager::FetchModel(absl::Time deadline) {
  StoreClient& client = *environment_.client;
  RETURN_IF_ERROR(environment_.algorithm->ShareModel(client));
  ASSIGN_OR_RETURN(const int64_t global_step, client.AwaitReady(deadline));
  environment_.algorithm->Begin(client);
  RETURN_IF_ERROR(PullEverything());
  RETURN_IF_ERROR(MakeReady(deadline));
  was_ready_ = true;
  return global_step;
}

absl::Status SessionManager::PullEverything() {
  RETURN_IF_ERROR(environment_.client->Pull(PullWhat::kEverything));
  return environment_.algorithm->source().ShowValues();
}

absl::Status SessionManager::MakeReady(absl::Time deadline) {
  const ScaffoldOptions& scaffold = this->scaffold().options();
  RETURN_IF_ERROR(AwaitReady(scaffold.ready_for_local_init, "ready for local_init", deadline));
  RETURN_IF_ERROR(RunIfGiven(scaffold.local_init));
  return AwaitReady(scaffold.ready, "ready", deadline);
}

absl::Status SessionManager::AwaitReady(const std::function<std::vector<std::string>()>& missing, const char* step,
                                        absl::Time deadline) {
  if (!missing) return absl::OkStatus();
  WaitNotices notices(environment_.loop->Now(), kBeforeFirstNotice);
  for (;;) {
    const std::vector<std::string> names = missing();
    if (names.empty()) return absl::OkStatus();
    const std::string what = absl::StrCat("not ready: ", absl::StrJoin(names, ", "));
    if (options_.is_chief)
      return absl::FailedPreconditionError(absl::StrCat("Init operations did not make model ", step,
                                                        ": init, init_fn and local_init ran, and still ", what));
    const absl::Time now = environment_.loop->Now();
    if (now >= deadline) return absl::UnavailableError(what);
    if (notices.Due(now)) LogInfo("waiting ", notices.Since(now), " for the model to be ", step, ": ", what);
    const absl::Time next = std::min(deadline, now + kReadyPoll);
    if (environment_.loop->RunUntil(environment_.stop_requested, next))
      return absl::CancelledError("a stop was requested");
  }
}

absl::StatusOr<int64_t> SessionManager::Load(const std::string& path) {
  StoreClient& client = *environment_.client;
  RETURN_IF_ERROR(FinishPending());
  Saver reader(*environment_.files, *environment_.loop, client, /*directory=*/"", {});
  Saver& saver = saver_ ? *saver_ : reader;
  RETURN_IF_ERROR(saver.Restore(path, Saver::Saveables::kLeave).status());
  ASSIGN_OR_RETURN(const int64_t global_step, client.AwaitReady(environment_.loop->Now() + options_.max_wait));
  RETURN_IF_ERROR(PullEverything());
  return global_step;
}

absl::Status SessionManager::FinishPending() {
  const absl::Status finished = environment_.algorithm->FinishPending(*environment_.client);
  if (!finished.ok() && (!absl::IsCancelled(finished) || IsInterrupted(finished))) return finished;
  return environment_.algorithm->source().ShowValues();
}

}  // namespace muster
