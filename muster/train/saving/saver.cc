#include "muster/train/saving/saver.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/base/version.h"
#include "muster/base/wrong_configuration.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/checkpoint/checkpoint_reader.h"
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
  ASSIGN_OR_RETURN(const PartSnapshot snapshot, ExportPart(client_, ps, hold));
  ASSIGN_OR_RETURN(const FileSummary written, WritePart(files_, JoinPath(directory_, TemporaryName(file)),
                                                        client_.ModelOf(ps), ViewOf(client_.ModelOf(ps), snapshot)));
  return ManifestPart{file, written.bytes, written.crc32c};
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
    return failed;
  }
  const Retention retention{options_.keep_checkpoint_max, absl::Hours(options_.keep_checkpoint_every_n_hours)};
  if (const absl::Status tidied = Tidy(files_, directory_, retention, manifest.save_id); !tidied.ok())
    LogWarning("old checkpoints could not be removed: ", tidied.ToString());
  return absl::OkStatus();
}

absl::StatusOr<std::string> Saver::Save() {
  RETURN_IF_ERROR(options_.settle());
  const Track::Span save(client_.track(), Activity::kCheckpoint);
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
  RETURN_IF_ERROR(files_.CreateDirectory(directory_));
  RETURN_IF_ERROR(AnnounceSave(files_, directory_, manifest.save_id));
  ASSIGN_OR_RETURN(const CheckpointCut cut, CutCheckpoint(client_));
  manifest.global_step = cut.global_step;
  if (!cut.work.empty()) manifest.extras[kWorkQueue] = absl::Base64Escape(cut.work);
  const std::string path = JoinPath(directory_, CheckpointName(cut.global_step));
  LogInfo("Saving checkpoints for ", cut.global_step, " into ", path, ".");
  for (int ps = 0; ps < client_.num_ps(); ++ps) {
    const StoreModel model = client_.ModelOf(ps);
    if (ps == 0) AddVariablesToManifest(model, manifest);
    ASSIGN_OR_RETURN(ManifestPart part,
                     SaveOnPs(ps, manifest.save_id,
                              PartFileName(cut.global_step, ps, client_.num_ps(), manifest.save_id), cut.hold));
    manifest.parts.push_back(std::move(part));
    AddPartToManifest(model, ps, manifest);
  }
  RETURN_IF_ERROR(Commit(manifest));
  last_checkpoint_ = path;
  return path;
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
  ASSIGN_OR_RETURN(const std::optional<std::string> latest,
                   LatestCheckpoint(files_, directory_,
                                    {.allow_older = options_.allow_older_checkpoint,
                                     .verify_checksums = options_.allow_older_checkpoint}));
  if (!latest) return std::nullopt;
  const auto all = ListCheckpoints(files_, directory_);
  if (all.ok() && !all->empty() && JoinPath(directory_, all->back()) != *latest)
    LogWarning(JoinPath(directory_, all->back()), " is damaged: going on from ", *latest, ", which is older");
  const auto step = Restore(*latest, saveables);
  if (!absl::IsDataLoss(step.status()) || options_.allow_older_checkpoint) return step;
  return absl::DataLossError(absl::StrCat(
      step.status().message(),
      "; delete this checkpoint, or allow an older one (allow_older_checkpoint), to go on from the one before"));
}

absl::StatusOr<int64_t> Saver::Restore(const std::string& path, Saveables saveables) {
  LogInfo("Restoring parameters from ", path);
  ASSIGN_OR_RETURN(const auto checkpoint, CheckpointReader::Open(files_, path));
  RETURN_IF_ERROR(CheckModelOfCheckpoint(checkpoint->manifest(), client_.binding().variables, path));
  std::vector<RestoredPart> parts;
  for (int ps = 0; ps < client_.num_ps(); ++ps) {
    ASSIGN_OR_RETURN(RestoredPart part, ReadPart(*checkpoint, client_.ModelOf(ps)));
    if (!part.with_slots && ps == 0)
      LogWarning("the checkpoint was made with the rule ", checkpoint->manifest().rule.name,
                 ": its slots are not restored");
    parts.push_back(std::move(part));
  }
  const auto work = checkpoint->manifest().extras.find(kWorkQueue);
  if (work != checkpoint->manifest().extras.end() && !absl::Base64Unescape(work->second, &parts[0].work))
    return absl::DataLossError(absl::StrCat("the work queue's state in ", path, " is damaged"));
  const int64_t step = checkpoint->manifest().global_step;
  RETURN_IF_ERROR(client_.Initialize(step, step, &parts));
  if (saveables == Saveables::kRestore) RETURN_IF_ERROR(RestoreSaveables(checkpoint->manifest()));
  last_checkpoint_ = path;
  return step;
}

}  // namespace muster
