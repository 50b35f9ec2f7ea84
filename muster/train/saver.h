// Leads the saving and restoring of checkpoints: the chief's side. Each ps writes its own part if it sees the
// directory, else its bytes are streamed here and written by this process; ps 0 commits the manifest last. Format:
// docs/checkpoint_format.md, steps: docs/store/checkpoints.md. Used by the training thread; blocks for as long as disks
// do.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/file_system.h"
#include "muster/checkpoint/manifest.h"
#include "muster/store/store_client.h"
#include "muster/transport/event_loop.h"

namespace muster {

// Something beside the variables that a checkpoint keeps: a generator's state, the position in the input.
struct Saveable {
  std::string name;                                         // unique in the session
  std::function<std::string()> save;                        // bytes, any
  std::function<absl::Status(const std::string&)> restore;  // InvalidArgument: not what save gave
};

struct SaverOptions {
  int keep_checkpoint_max = 5;  // 0 keeps all
  // One that would be removed is kept for ever if it was saved so long after the last one so kept (RetainNewest).
  double keep_checkpoint_every_n_hours = 10000;  // more than 0
  bool allow_older_checkpoint = false;           // when the newest is damaged, restore the newest that isn't
  // Called first by Save: makes the client free to be used, and what was pushed a part of the checkpoint.
  std::function<absl::Status()> settle = [] { return absl::OkStatus(); };
};

// InvalidArgument (IsWrongConfiguration): a value that none accepts.
[[nodiscard]] absl::Status CheckSaverOptions(const SaverOptions& options);

class Saver {
 public:
  // All borrowed for its life; `loop` is the client's.
  Saver(FileSystem& files, EventLoop& loop, StoreClient& client, std::string directory, SaverOptions options);

  void Add(Saveable saveable) { saveables_.push_back(std::move(saveable)); }

  // Saves what the ps hold now, cut at one step. Returns the path ("dir/model.ckpt-100"). On an error the checkpoints
  // that were there stay. OutOfRange: tried several times, and something came in between each time (a ps was
  // restarted, say); later it may work.
  absl::StatusOr<std::string> Save();

  // The newest checkpoint of the directory given to every ps as its initial state; its global step, or nothing if there
  // is no checkpoint. DataLoss: damaged (names the file). FailedPrecondition: of another model (names the variable).
  // `saveables`: what was added is restored too. In the middle of training it isn't: the input goes on where it is.
  enum class Saveables { kRestore, kLeave };
  absl::StatusOr<std::optional<int64_t>> RestoreLatest(Saveables saveables = Saveables::kRestore);

  // The checkpoint at `path`, likewise; also in the middle of training. NotFound: there is none.
  absl::StatusOr<int64_t> Restore(const std::string& path, Saveables saveables = Saveables::kRestore);

  const std::string& directory() const { return directory_; }
  // Path of the last checkpoint saved or restored; empty if none.
  const std::string& last_checkpoint() const { return last_checkpoint_; }

 private:
  absl::StatusOr<std::string> SaveOnce();
  absl::StatusOr<ManifestPart> SavePart(int ps, const std::string& save_id, const std::string& file, uint64_t hold);
  [[nodiscard]] absl::Status Commit(const Manifest& manifest);
  [[nodiscard]] absl::Status RestoreSaveables(const Manifest& manifest);

  FileSystem& files_;
  EventLoop& loop_;
  StoreClient& client_;
  const std::string directory_;
  const SaverOptions options_;
  std::vector<Saveable> saveables_;
  std::string last_checkpoint_;
  uint64_t saves_ = 0;
};

}  // namespace muster
