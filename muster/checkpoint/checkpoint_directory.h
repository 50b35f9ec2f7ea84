// The checkpoints in a directory: how a save becomes visible, which one is the newest, which ones are deleted. A save
// has an id, and its files are found by it:
//   1. PartFileName(step, part, n, save_id) names the parts; each writer writes its part to TemporaryName(part) and
//   fsyncs it;
//   2. one process (ps 0) calls CommitManifest: parts renamed, manifest renamed last, directory fsynced, state written;
//   3. then RetainNewest and RemoveLeftovers.
// The rename of the manifest is the commit: before it there is no checkpoint, after it a whole one. Part names carry
// the save id, so that saving a step again (a session saves when it starts) never touches the parts of the first.
// Stateless functions, thread-safe as far as the FileSystem is; one process at a time may commit and delete.
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

// What follows a checkpoint's name in the name of its manifest.
inline constexpr char kManifestSuffix[] = ".manifest.json";

// "model.ckpt-100": what users and log lines call a checkpoint.
std::string CheckpointName(int64_t global_step);
// "model.ckpt-100.manifest.json"
std::string ManifestFileName(int64_t global_step);
// "model.ckpt-100.part-00000-of-00003.<save id>.safetensors"
std::string PartFileName(int64_t global_step, int part, int num_parts, std::string_view save_id);
// Name that a part (or another file) has until it is committed.
std::string TemporaryName(std::string_view file);
// The step in "model.ckpt-100"; nullopt for any other text.
std::optional<int64_t> StepOfCheckpoint(std::string_view name);

// A small file in the directory by which another process tells whether it sees the same directory (a shared file system
// or one host) as the one that leads the save. RemoveLeftovers takes it away.
[[nodiscard]] absl::Status AnnounceSave(FileSystem& files, const std::string& directory, std::string_view save_id);
bool SeesSave(FileSystem& files, const std::string& directory, std::string_view save_id);

// Makes the checkpoint visible. Its parts have the names of PartFileName and lie under their temporary names (or, after
// an attempt that failed half-way, their own: calling again is fine). InvalidArgument: not a valid manifest; DataLoss:
// a part is missing or has another size. On an error before the manifest's rename there is no new checkpoint and those
// before are as they were; an error of the state file comes after it: the checkpoint is there and will be found.
[[nodiscard]] absl::Status CommitManifest(FileSystem& files, const std::string& directory, const Manifest& manifest);

// TensorFlow's text file `checkpoint`: names relative to the directory, oldest first.
struct CheckpointState {
  std::string latest;                        // model_checkpoint_path
  std::vector<std::string> all;              // all_model_checkpoint_paths
  std::map<std::string, absl::Time> saved;   // all_model_checkpoint_timestamps: of each of `all`, or of none
  std::optional<absl::Time> last_preserved;  // last_preserved_timestamp

  // Kept for ever: saved no later than the one that was last so kept, and still there.
  bool IsPreserved(const std::string& name) const;
};
// NotFound: no such file. DataLoss: there is one but it can't be understood (never taken for "no checkpoint").
absl::StatusOr<CheckpointState> ReadCheckpointState(FileSystem& files, const std::string& directory);

struct LatestOptions {
  bool allow_older = false;      // when the newest is damaged, take the newest that isn't
  bool verify_checksums = true;  // read every part whole; false checks their sizes and headers only
};
// Path of the newest checkpoint ("dir/model.ckpt-100"), nullopt where there is none (also where there is no directory).
// Newest: a manifest that the state file doesn't list (committed after it was written) with the highest step, else what
// the state file says, else the highest step. DataLoss names the damaged or missing file and says what to do.
absl::StatusOr<std::optional<std::string>> LatestCheckpoint(FileSystem& files, const std::string& directory,
                                                            const LatestOptions& options = {});

// All checkpoints of the directory, oldest first, as names ("model.ckpt-100"). Not verified.
absl::StatusOr<std::vector<std::string>> ListCheckpoints(FileSystem& files, const std::string& directory);

// What a user means by `path`: that checkpoint ("dir/model.ckpt-100", or its manifest), or the newest of a model_dir.
// The path without the manifest's suffix; nothing is opened or verified. NotFound: neither.
// FailedPrecondition: a directory without checkpoints.
absl::StatusOr<std::string> FindCheckpoint(FileSystem& files, const std::string& path);

// Deletes all but the newest `keep` (≥ 1; 0 keeps all) and those that are preserved: one that would be deleted is kept
// for ever if it was saved `preserve_every` or more after the last one so kept (at first: after the first of the
// directory). TensorFlow's keep_checkpoint_every_n_hours (python/training/checkpoint_management.py,
// CheckpointManager._sweep). Which ones are preserved is known from the state file, and they don't count.
// In this order: manifests, state file, parts, so that a reader never finds a manifest without parts, nor one that the
// state file doesn't list and that would therefore count as the newest. Never deletes the newest.
[[nodiscard]] absl::Status RetainNewest(FileSystem& files, const std::string& directory, int keep,
                                        absl::Duration preserve_every = absl::InfiniteDuration());

// Deletes what no manifest refers to: temporary files, parts and announcements of saves that failed or were replaced.
// With a `save_id`, those of saves with a higher one stay: they began later, and may be under way (NewSaveId). Other
// files are left alone. Whoever commits in this directory calls it, for it also deletes half-written manifests.
[[nodiscard]] absl::Status RemoveLeftovers(FileSystem& files, const std::string& directory,
                                           std::string_view save_id = {});

// How many checkpoints are kept, see RetainNewest.
struct Retention {
  int keep = 5;
  absl::Duration preserve_every = absl::InfiniteDuration();
};

// Both, after the commit of the save `save_id`.
[[nodiscard]] absl::Status Tidy(FileSystem& files, const std::string& directory, const Retention& retention,
                                std::string_view save_id);

// Ids in order of time, different in every life of every chief: neither the parts nor the announcement of an earlier
// job that saved the same step into the directory are taken for those of a later one.
std::string NewSaveId(absl::Time now, uint64_t incarnation, uint64_t number);

}  // namespace muster
