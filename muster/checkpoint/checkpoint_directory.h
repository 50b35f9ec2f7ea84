// The checkpoints in a directory: how a save becomes visible, which checkpoint is the newest, which are deleted. A save
// has an id:
//   1. PartFileName names the parts, with a number (FreeSaveNumber) if the step has parts already; each writer writes
//      its part to TemporaryName(part, save_id) and fsyncs it;
//   2. one process (ps 0) calls CommitManifest, which renames the parts, then the manifest, fsyncs the directory and
//      writes the state;
//   3. then come RetainNewest and RemoveLeftovers. A save that fails before the commit ends with AbandonSave.
// The rename of the manifest is the commit: before it there is no checkpoint, after it a whole one. A part is never
// renamed to a name that is taken, so saving a step again (a session saves when it starts) never touches the parts of
// the first save.
// Stateless functions, as thread-safe as the FileSystem; only one process at a time may commit and delete.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/files/file_system.h"
#include "muster/checkpoint/checkpoint_reader.h"
#include "muster/checkpoint/manifest.h"

namespace muster {

// Follows a checkpoint's name in the name of its manifest.
inline constexpr char kManifestSuffix[] = ".manifest.json";

// Returns "model.ckpt-100", the name of a checkpoint for users and log lines.
std::string CheckpointName(int64_t global_step);
// Returns "model.ckpt-100.manifest.json".
std::string ManifestFileName(int64_t global_step);
// Returns "model.ckpt-100.ps-0-of-3.safetensors", or "model.ckpt-100.ps-0-of-3.save-2.safetensors" for save 2 of a
// step.
std::string PartFileName(int64_t global_step, int part, int num_parts, int save_number = 1);
// Returns "<file>.<save id>.tmp", the name that a part has until it is committed.
std::string TemporaryName(std::string_view file, std::string_view save_id);
// Returns the least number ≥ 1 for which no part of that step has its name: parts of a committed save, or of one that
// stopped before its commit, keep theirs. An unreadable directory counts as empty.
int FreeSaveNumber(FileSystem& files, const std::string& directory, int64_t global_step);
// Returns the step in "model.ckpt-100"; nullopt for any other text.
std::optional<int64_t> StepOfCheckpoint(std::string_view name);
// Whether a ps may be asked to write a part under this name: no path, and none of the directory's other files.
bool MayBePart(std::string_view file);

// Write and look for a small file that shows another process whether it sees the same directory (a shared file system
// or one host) as the process that leads the save. RemoveLeftovers removes the file.
[[nodiscard]] absl::Status AnnounceSave(FileSystem& files, const std::string& directory, std::string_view save_id);
bool SeesSave(FileSystem& files, const std::string& directory, std::string_view save_id);

// Removes the announcement and the temporary parts of a save that is given up before its commit was requested: on a
// full disk they take the space that the next one needs. Ignores errors.
void AbandonSave(FileSystem& files, const std::string& directory, std::string_view save_id);

// Makes the checkpoint visible. Its parts are named by PartFileName and exist under their temporary names (or, after an
// attempt that failed half-way, their own: calling again is fine, and reads them whole). InvalidArgument: the manifest
// is invalid. DataLoss: a part is missing, or has another size or checksum. AlreadyExists: a part's name was taken by
// another save. After an error before the manifest's rename, there is no new checkpoint and the earlier ones are
// unchanged. An error of the state file comes after it: the checkpoint exists and will be found.
[[nodiscard]] absl::Status CommitManifest(FileSystem& files, const std::string& directory, const Manifest& manifest);

// TensorFlow's text file `checkpoint`: names relative to the directory, oldest first.
struct CheckpointState {
  std::string latest;                        // model_checkpoint_path
  std::vector<std::string> all;              // all_model_checkpoint_paths
  std::map<std::string, absl::Time> saved;   // all_model_checkpoint_timestamps: for each of `all`, or none
  std::optional<absl::Time> last_preserved;  // last_preserved_timestamp

  // True if the checkpoint exists and was saved no later than the last one to be kept for ever.
  bool IsPreserved(const std::string& name) const;
};
// NotFound: no such file. DataLoss: the file exists but can't be understood.
absl::StatusOr<CheckpointState> ReadCheckpointState(FileSystem& files, const std::string& directory);

struct LatestOptions {
  bool allow_older = false;      // when the newest is damaged, take the newest one that isn't
  bool verify_checksums = true;  // read every part whole; false: check only sizes and headers
};
// Returns the path of the newest checkpoint ("dir/model.ckpt-100"); nullopt if there is none (or no directory). The
// newest is the manifest with the highest step that the state file doesn't list (committed after it was written), else
// the state file's latest, else the highest step. A state file that can't be understood is only a lost hint: a warning,
// and the highest step. DataLoss names the damaged or missing file and says what to do. An older one that is taken is
// named by a warning.
absl::StatusOr<std::optional<std::string>> LatestCheckpoint(FileSystem& files, const std::string& directory,
                                                            const LatestOptions& options = {});
// The same, opened: what was verified is what is read. Null if there is none.
absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenLatestCheckpoint(FileSystem& files, const std::string& directory,
                                                                       const LatestOptions& options = {});

// Returns the names of all checkpoints of the directory ("model.ckpt-100"), oldest first. Doesn't verify them. Like
// LatestCheckpoint if the state file can't be understood.
absl::StatusOr<std::vector<std::string>> ListCheckpoints(FileSystem& files, const std::string& directory);

// Interprets a user's `path` as a checkpoint ("dir/model.ckpt-100", or its manifest), or as a model_dir whose newest
// checkpoint is meant. Returns the path without the manifest's suffix; opens and verifies nothing. NotFound: it is
// neither. FailedPrecondition: a directory without checkpoints.
absl::StatusOr<std::string> FindCheckpoint(FileSystem& files, const std::string& path);

// Deletes all checkpoints but the newest `keep` (≥ 1; 0 keeps all) and the preserved ones. A checkpoint about to be
// deleted is kept for ever instead if it was saved `preserve_every` or more after the last one so kept (at first: after
// the first of the directory). This is TensorFlow's keep_checkpoint_every_n_hours
// (python/training/checkpoint_management.py, CheckpointManager._sweep). The state file records which ones are
// preserved; they don't count. Deletes manifests, then writes the state file, then deletes parts, so that a reader
// never finds a manifest without parts, nor one that the state file doesn't list, which would count as the newest.
// Never deletes the newest.
[[nodiscard]] absl::Status RetainNewest(FileSystem& files, const std::string& directory, int keep,
                                        absl::Duration preserve_every = absl::InfiniteDuration());

// Deletes files that no manifest refers to: temporary files, parts and announcements of saves that failed or were
// replaced. With a `save_id`, keeps those of saves with a higher one: they began later, and may be in progress
// (NewSaveId). A part under its own name doesn't tell whose it is, so it stays while a later save is announced. Leaves
// other files alone. Only the process that commits in this directory may call it, because it also
// deletes half-written manifests.
[[nodiscard]] absl::Status RemoveLeftovers(FileSystem& files, const std::string& directory,
                                           std::string_view save_id = {});

// How many checkpoints to keep: see RetainNewest.
struct Retention {
  int keep = 5;
  absl::Duration preserve_every = absl::InfiniteDuration();
};

// Does both, after the commit of the save `save_id`.
[[nodiscard]] absl::Status Tidy(FileSystem& files, const std::string& directory, const Retention& retention,
                                std::string_view save_id);

// Returns ids in order of time, different for every start of every chief: neither parts nor announcements of an earlier
// job that saved the same step into the directory are mistaken for those of a later one.
std::string NewSaveId(absl::Time now, uint64_t incarnation, uint64_t number);

}  // namespace muster
