// Saves and restores checkpoints: the chief's side. Each ps writes its own part if it sees the directory; otherwise its
// bytes are fetched piece by piece and written by this process. ps 0 commits the manifest last. Format:
// docs/checkpoint_format.md, steps: docs/store/checkpoints.md. Used by the training thread; blocks for as long as disks
// do.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/files/file_system.h"
#include "muster/checkpoint/checkpoint_reader.h"
#include "muster/checkpoint/manifest.h"
#include "muster/store/client/store_client.h"
#include "muster/transport/event_loop.h"

namespace muster {

// Something that a checkpoint keeps beside the variables: a generator's state, the position in the input.
struct Saveable {
  std::string name;                                         // unique in the session
  std::function<std::string()> save;                        // arbitrary bytes
  std::function<absl::Status(const std::string&)> restore;  // InvalidArgument: `save` didn't make these bytes
};

struct SaverOptions {
  int keep_checkpoint_max = 5;  // 0 keeps all
  // Keeps a checkpoint for ever if it was saved this long after the last one so kept (RetainNewest).
  double keep_checkpoint_every_n_hours = 10000;  // more than 0
  bool allow_older_checkpoint = false;           // when the newest is damaged, restore the newest that isn't
  // Called first by Save: frees the client for use, and makes what was pushed a part of the checkpoint.
  std::function<absl::Status()> finish_pending = [] { return absl::OkStatus(); };
};

// InvalidArgument (IsWrongConfiguration): a value that is never accepted.
[[nodiscard]] absl::Status CheckSaverOptions(const SaverOptions& options);

class Saver {
 public:
  // All borrowed for its life; `loop` is the client's.
  Saver(FileSystem& files, EventLoop& loop, StoreClient& client, std::string directory, SaverOptions options);

  void Add(Saveable saveable) { saveables_.push_back(std::move(saveable)); }

  // Saves what the ps hold now, cut at one step. Returns the path ("dir/model.ckpt-100"). On an error the previous
  // checkpoints stay, and what was written of this one is removed. OutOfRange: interrupted at every one of several
  // attempts (a ps was restarted, say). IsSaveTrouble: the files can't be written. A directory that was deleted is made
  // again, with a warning.
  absl::StatusOr<std::string> Save();

  // Finds out which ps don't see the directory, and says in the log what follows from that, unless it has said so for
  // the same ps. Writes and removes a file there (AnnounceSave). Errors: those of StoreClient.
  [[nodiscard]] absl::Status SayWhoSeesTheDirectory();

  // Whether training should go on after this error of Save, and save later: it may pass. A missing permission or a
  // read-only file system doesn't, unless this saver has saved before.
  bool IsWorthARetry(const absl::Status& failed) const;

  // False if the last checkpoint was deleted.
  bool LastIsThere() const;

  // When the last checkpoint saved or restored was begun, by its chief's clock; none: there is none, or it doesn't say.
  std::optional<absl::Time> last_saved_at() const { return last_saved_at_; }
  // How many calls of Save have failed, and why the last one has; empty: it hasn't.
  uint64_t failures() const { return failures_; }
  const std::string& last_failure() const { return last_failure_; }

  // Gives the newest checkpoint of the directory to every ps as its initial state. Returns its global step, or nothing
  // if there is no checkpoint. DataLoss: damaged (names the file). FailedPrecondition: of another model (names the
  // variable). `saveables`: whether to restore what was added, too. In the middle of training it isn't: the input
  // continues where it is.
  enum class Saveables { kRestore, kLeave };
  absl::StatusOr<std::optional<int64_t>> RestoreLatest(Saveables saveables = Saveables::kRestore);

  // The same with the checkpoint at `path`; also in the middle of training. NotFound: there is none.
  absl::StatusOr<int64_t> Restore(const std::string& path, Saveables saveables = Saveables::kRestore);

  const std::string& directory() const { return directory_; }
  // Path of the last checkpoint saved or restored; empty if none.
  const std::string& last_checkpoint() const { return last_checkpoint_; }

 private:
  absl::StatusOr<std::string> SaveOnce();
  absl::StatusOr<std::string> TrySeveralTimes();
  [[nodiscard]] absl::Status WriteParts(Manifest& manifest);
  [[nodiscard]] absl::Status MakeDirectory();
  absl::StatusOr<ManifestPart> SaveOnPs(int ps, const std::string& save_id, const std::string& file, uint64_t hold);
  [[nodiscard]] absl::Status Commit(const Manifest& manifest);
  void NoteLast(const std::string& path, const Manifest& manifest);
  absl::StatusOr<int64_t> RestoreFrom(const CheckpointReader& checkpoint, Saveables saveables);
  [[nodiscard]] absl::Status RestoreSaveables(const Manifest& manifest);

  FileSystem& files_;
  EventLoop& loop_;
  StoreClient& client_;
  const std::string directory_;
  const SaverOptions options_;
  std::vector<Saveable> saveables_;
  std::string last_checkpoint_;
  uint64_t saves_ = 0;  // begun
  bool has_saved_ = false;
  std::vector<int> elsewhere_;  // the ps that don't see the directory, as far as the log has it
  std::optional<absl::Time> last_saved_at_;
  uint64_t failures_ = 0;
  std::string last_failure_;
};

}  // namespace muster
