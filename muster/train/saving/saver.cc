#include "muster/train/saving/saver.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/base/version.h"
#include "muster/base/wrong_configuration.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/checkpoint/save_trouble.h"
#include "muster/store/client/checkpoint_calls.h"
#include "muster/store/client/cut_leader.h"

namespace muster {
namespace {

// How often to attempt a save that is interrupted (a ps restarted, say). Few, because the next scheduled save is near.
constexpr int kAttempts = 3;
constexpr absl::Duration kPause = absl::Milliseconds(100);
// A name among the extras that isn't the session's: it belongs to the values.
constexpr char kWorkQueue[] = "muster/work_queue";

}  // namespace

absl::Status CheckSaverOptions(const SaverOptions& options) {
  if (options.keep_checkpoint_every_n_hours > 0) return absl::OkStatus();
  return WrongOptionError(absl::StrCat("keep_checkpoint_every_n_hours is ", options.keep_checkpoint_every_n_hours,
                                       "; accepted: more than 0"));
}

Saver::Saver(FileSystem& files, EventLoop& loop, StoreClient& client, std::string directory, SaverOptions options)
    : files_(files), loop_(loop), client_(client), directory_(std::move(directory)), options_(options) {}

absl::StatusOr<ManifestPart> Saver::SaveOnPs(int ps, const std::string& save_id, const std::string& file,
                                             uint64_t hold) {
  auto saved = SavePart(client_, ps, directory_, save_id, file, hold);
  if (saved.ok()) return ManifestPart{file, saved->bytes, saved->crc32c};
  if (!absl::IsNotFound(saved.status())) return saved.status();
  ASSIGN_OR_RETURN(const SavePartReply written,
                   FetchPartInto(client_, ps, hold, files_, JoinPath(directory_, TemporaryName(file, save_id))));
  return ManifestPart{file, written.bytes, written.crc32c};
}

absl::Status Saver::SayWhoSeesTheDirectory() {
  const std::string sign = NewSaveId(loop_.Now(), client_.MakeStamp(0, 0).incarnation, ++saves_);
  const absl::Status announced = AnnounceSave(files_, directory_, sign);
  absl::StatusOr<std::vector<int>> elsewhere = elsewhere_;
  if (announced.ok()) elsewhere = FindPsElsewhere(client_, directory_, sign);
  AbandonSave(files_, directory_, sign);
  if (!announced.ok()) return absl::OkStatus();  // the first save says what is wrong
  RETURN_IF_ERROR(elsewhere.status());
  if (std::exchange(elsewhere_, *elsewhere) == *elsewhere) return absl::OkStatus();
  if (elsewhere->empty()) {
    LogInfo("Every ps sees ", directory_, " now, and writes its part of a checkpoint there.");
    return absl::OkStatus();
  }
  const std::string names = absl::StrJoin(
      *elsewhere, ", ", [this](std::string* out, int ps) { absl::StrAppend(out, client_.ps_calls().Name(ps)); });
  LogWarning(names, elsewhere->size() == 1 ? " does" : " do", " not see ", directory_,
             " as this process does, which writes ", elsewhere->size() == 1 ? "its part" : "their parts",
             " of checkpoints there itself. Saving and restoring work; what else reads that folder works only where "
             "this process's disk is seen: an evaluator (place it on this host), muster checkpoint, TensorBoard, and "
             "a chief that is started on another host, which would find no checkpoint.");
  return absl::OkStatus();
}

absl::Status Saver::Commit(const Manifest& manifest) {
  absl::Status committed = CommitCheckpoint(client_, directory_, SerializeManifest(manifest),
                                            options_.keep_checkpoint_max, options_.keep_checkpoint_every_n_hours);
  if (!absl::IsNotFound(committed)) return committed;
  // ps 0 doesn't see the directory: it only says whether the lease still holds, and the rename happens here.
  RETURN_IF_ERROR(CommitCheckpoint(client_, "", ""));
  if (absl::Status failed = CommitManifest(files_, directory_, manifest); !failed.ok()) {
    // If this chief was paused here, its successor has tidied up its files: then the lost lease is the error to report.
    RETURN_IF_ERROR(CommitCheckpoint(client_, "", ""));
    RemoveLeftovers(files_, directory_, manifest.save_id).IgnoreError();  // gives the space back
    return absl::IsInvalidArgument(failed) ? failed : AsSaveTrouble(failed);
  }
  const Retention retention{options_.keep_checkpoint_max, absl::Hours(options_.keep_checkpoint_every_n_hours)};
  if (const absl::Status tidied = Tidy(files_, directory_, retention, manifest.save_id); !tidied.ok())
    LogWarning("old checkpoints could not be removed: ", tidied.ToString());
  return absl::OkStatus();
}

absl::StatusOr<std::string> Saver::Save() {
  RETURN_IF_ERROR(options_.finish_pending());
  const Track::Span save(client_.track(), Activity::kCheckpoint);
  absl::StatusOr<std::string> path = TrySeveralTimes();
  has_saved_ = has_saved_ || path.ok();
  failures_ += path.ok() ? 0 : 1;
  last_failure_ = std::string(path.status().message());
  return path;
}

bool Saver::IsWorthARetry(const absl::Status& failed) const {
  if (absl::IsPermissionDenied(failed)) return has_saved_;
  return absl::IsOutOfRange(failed) || IsSaveTrouble(failed);
}

bool Saver::LastIsThere() const {
  return last_checkpoint_.empty() || files_.Exists(absl::StrCat(last_checkpoint_, kManifestSuffix));
}

absl::StatusOr<std::string> Saver::TrySeveralTimes() {
  for (int attempt = 1;; ++attempt) {
    auto saved = SaveOnce();
    if (!absl::IsOutOfRange(saved.status()) || attempt == kAttempts) return saved;
    LogInfo("could not save: ", saved.status().message(), "; trying again");
    loop_.RunUntil([] { return false; }, loop_.Now() + kPause);
  }
}

absl::StatusOr<std::string> Saver::SaveOnce() {
  Manifest manifest;
  manifest.saved_at = absl::ToUnixMillis(loop_.Now());
  manifest.lease_epoch = static_cast<int64_t>(client_.chief_epoch());
  manifest.save_id = NewSaveId(loop_.Now(), client_.MakeStamp(0, 0).incarnation, ++saves_);
  manifest.writer = "ps:0";
  manifest.muster_version = kMusterVersion;
  for (const Saveable& saveable : saveables_) manifest.extras[saveable.name] = absl::Base64Escape(saveable.save());
  if (const absl::Status failed = WriteParts(manifest); !failed.ok()) {
    AbandonSave(files_, directory_, manifest.save_id);
    return failed;
  }
  RETURN_IF_ERROR(Commit(manifest));
  NoteLast(JoinPath(directory_, CheckpointName(manifest.global_step)), manifest);
  return last_checkpoint_;
}

void Saver::NoteLast(const std::string& path, const Manifest& manifest) {
  last_checkpoint_ = path;
  last_saved_at_ = manifest.saved_at > 0 ? std::optional(absl::FromUnixMillis(manifest.saved_at)) : std::nullopt;
}

absl::Status Saver::MakeDirectory() {
  if (has_saved_ && !files_.Exists(directory_))
    LogWarning(directory_, " is gone, with the checkpoints in it: it is made again, for the next one");
  return AsSaveTrouble(files_.CreateDirectory(directory_));
}

// Cuts the ps, and has each part written under its temporary name. Fills in the manifest.
absl::Status Saver::WriteParts(Manifest& manifest) {
  RETURN_IF_ERROR(MakeDirectory());
  RETURN_IF_ERROR(AsSaveTrouble(AnnounceSave(files_, directory_, manifest.save_id)));
  ASSIGN_OR_RETURN(const CheckpointCut cut, CutCheckpoint(client_));
  manifest.global_step = cut.global_step;
  if (!cut.work.empty()) manifest.extras[kWorkQueue] = absl::Base64Escape(cut.work);
  LogInfo("Saving checkpoints for ", cut.global_step, " into ", JoinPath(directory_, CheckpointName(cut.global_step)),
          ".");
  const int save_number = FreeSaveNumber(files_, directory_, cut.global_step);
  for (int ps = 0; ps < client_.num_ps(); ++ps) {
    const StoreModel model = client_.ModelOf(ps);
    if (ps == 0) AddVariablesToManifest(model, manifest);
    ASSIGN_OR_RETURN(
        ManifestPart part,
        SaveOnPs(ps, manifest.save_id, PartFileName(cut.global_step, ps, client_.num_ps(), save_number), cut.hold));
    manifest.parts.push_back(std::move(part));
    AddPartToManifest(model, ps, manifest);
  }
  return absl::OkStatus();
}

absl::Status Saver::RestoreSaveables(const Manifest& manifest) {
  for (const Saveable& saveable : saveables_) {
    const auto saved = manifest.extras.find(saveable.name);
    if (saved == manifest.extras.end()) continue;
    std::string bytes;
    if (!absl::Base64Unescape(saved->second, &bytes))
      return absl::DataLossError(absl::StrCat("the checkpoint's '", saveable.name, "' is damaged"));
    RETURN_IF_ERROR(saveable.restore(bytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<int64_t>> Saver::RestoreLatest(Saveables saveables) {
  const auto latest = OpenLatestCheckpoint(files_, directory_, {.allow_older = options_.allow_older_checkpoint});
  if (absl::IsDataLoss(latest.status()) && !options_.allow_older_checkpoint)
    return absl::DataLossError(
        absl::StrCat(latest.status().message(), " (allow_older_checkpoint goes on from the newest one that is whole)"));
  RETURN_IF_ERROR(latest.status());
  if (*latest == nullptr) return std::nullopt;
  ASSIGN_OR_RETURN(const int64_t step, RestoreFrom(**latest, saveables));
  return step;
}

absl::StatusOr<int64_t> Saver::Restore(const std::string& path, Saveables saveables) {
  ASSIGN_OR_RETURN(const auto checkpoint, CheckpointReader::Open(files_, path));
  return RestoreFrom(*checkpoint, saveables);
}

absl::StatusOr<int64_t> Saver::RestoreFrom(const CheckpointReader& checkpoint, Saveables saveables) {
  const std::string& path = checkpoint.path();
  const Manifest& manifest = checkpoint.manifest();
  LogInfo("Restoring parameters from ", path);
  RETURN_IF_ERROR(CheckModelOfCheckpoint(manifest, client_.binding().variables, path));
  std::vector<RestoredPart> parts;
  for (int ps = 0; ps < client_.num_ps(); ++ps) {
    ASSIGN_OR_RETURN(RestoredPart part, ReadPart(checkpoint, client_.ModelOf(ps)));
    if (!part.with_slots && ps == 0)
      LogWarning("the checkpoint was made with the rule ", manifest.rule.name, ": its slots are not restored");
    parts.push_back(std::move(part));
  }
  const auto work = manifest.extras.find(kWorkQueue);
  if (work != manifest.extras.end() && !absl::Base64Unescape(work->second, &parts[0].work))
    return absl::DataLossError(absl::StrCat("the work queue's state in ", path, " is damaged"));
  const int64_t step = manifest.global_step;
  RETURN_IF_ERROR(client_.Initialize(step, step, &parts));
  if (saveables == Saveables::kRestore) RETURN_IF_ERROR(RestoreSaveables(manifest));
  NoteLast(path, manifest);
  return step;
}

}  // namespace muster
