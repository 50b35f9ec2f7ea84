// The checkpoints in a directory: how a save becomes visible, which checkpoint is the newest, which are deleted. A save
// has an id that identifies its files:
//   1. PartFileName(step, part, n, save_id) names the parts; each writer writes its part to TemporaryName(part) and
//      fsyncs it;
//   2. one process (ps 0) calls CommitManifest, which renames the parts, then the manifest, fsyncs the directory and
//      writes the state;
//   3. then come RetainNewest and RemoveLeftovers.
// The rename of the manifest is the commit: before it there is no checkpoint, after it a whole one. Part names contain
// the save id, so that saving a step again (a session saves when it starts) never touches the parts of the first save.
// Stateless functions, as thread-safe as the FileSystem; only one process at a time may commit and delete.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/files/file_system.h"
#include "muster/checkpoint/manifest.h"

namespace muster {

// Follows a checkpoint's name in the name of its manifest.
inline constexpr char kManifestSuffix[] = ".manifest.json";

// Returns "model.ckpt-100", the name of a checkpoint for users and log lines.
std::string CheckpointName(int64_t global_step);
// Returns "model.ckpt-100.manifest.json".
std::string ManifestFileName(int64_t global_step);
// Returns "model.ckpt-100.part-00000-of-00003.<save id>.safetensors".
std::string PartFileName(int64_t global_step, int part, int num_parts, std::string_view save_id);
// Returns the name that a part (or another file) has until it is committed.
std::string TemporaryName(std::string_view file);
// Returns the step in "model.ckpt-100"; nullopt for any other text.
std::optional<int64_t> StepOfCheckpoint(std::string_view name);
// Whether a ps may be asked to write a part under this name: no path, and none of the directory's other files.
bool MayBePart(std::string_view file);

// Write and look for a small file that shows another process whether it sees the same directory (a shared file system
// or one host) as the process that leads the save. RemoveLeftovers removes the file.
[[nodiscard]] absl::Status AnnounceSave(FileSystem& files, const std::string& directory, std::string_view save_id);
bool SeesSave(FileSystem& files, const std::string& directory, std::string_view save_id);

// Makes the checkpoint visible. Its parts are named by PartFileName and exist under their temporary names (or, after an
// attempt that failed half-way, their own: calling again is fine). InvalidArgument: the manifest is invalid. DataLoss:
// a part is missing or has another size. After an error before the manifest's rename, there is no new checkpoint and
// the earlier ones are unchanged. An error of the state file comes after it: the checkpoint exists and will be found.
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
// NotFound: no such file. DataLoss: the file exists but can't be understood (never taken for "no checkpoint").
absl::StatusOr<CheckpointState> ReadCheckpointState(FileSystem& files, const std::string& directory);

struct LatestOptions {
  bool allow_older = false;      // when the newest is damaged, take the newest one that isn't
  bool verify_checksums = true;  // read every part whole; false: check only sizes and headers
};
// Returns the path of the newest checkpoint ("dir/model.ckpt-100"); nullopt if there is none (or no directory). The
// newest is the manifest with the highest step that the state file doesn't list (committed after it was written), else
// the state file's latest, else the highest step. DataLoss names the damaged or missing file and says what to do.
absl::StatusOr<std::optional<std::string>> LatestCheckpoint(FileSystem& files, const std::string& directory,
                                                            const LatestOptions& options = {});

// Returns the names of all checkpoints of the directory ("model.ckpt-100"), oldest first. Doesn't verify them.
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
// (NewSaveId). Leaves other files alone. Only the process that commits in this directory may call it, because it also
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
