// Makes a model ready: the chief restores it from a checkpoint or initialises it, all others wait for that.
// TensorFlow's SessionManager (python/training/session_manager.py). Session and Supervisor use it; a SessionCreator
// chooses among its three functions. Used by one thread; waits in the environment's event loop.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/train/hook_api/session_environment.h"
#include "muster/train/saving/saver.h"
#include "muster/train/session/scaffold.h"

namespace muster {

struct SessionManagerOptions {
  bool is_chief = false;
  std::string checkpoint_dir;  // empty: nothing is saved
  // Restores exactly this checkpoint ("dir/model.ckpt-100") instead of the newest of a checkpoint_dir.
  std::string checkpoint_filename_with_path;
  std::shared_ptr<Scaffold> scaffold;  // null: an empty one
  SaverOptions saver;                  // unless the scaffold has one; `finish_pending` is the manager's
  std::vector<Saveable> saveables;     // likewise
  absl::Duration max_wait = absl::Seconds(7200);
};

// InvalidArgument (IsWrongConfiguration): both a checkpoint_dir and a checkpoint_filename_with_path.
[[nodiscard]] absl::Status CheckWhatIsRestored(const SessionManagerOptions& options);

class SessionManager {
 public:
  SessionManager(SessionEnvironment environment, SessionManagerOptions options);

  // On the chief: keeps what the ps hold; else restores checkpoint_filename_with_path or the newest checkpoint; else
  // makes the values with the scaffold's init and init_fn. Then runs local init and the ready check. Returns the global
  // step. Errors: those of StoreClient, Saver and scaffold; Aborted: a ps lost the model meanwhile, try again;
  // Cancelled: training has ended, or a stop was requested; Unavailable: the model was lost (LoseModel) and there is no
  // checkpoint; NotFound (IsWrongConfiguration): none at checkpoint_filename_with_path; CheckWhatIsRestored's.
  absl::StatusOr<int64_t> PrepareSession();

  // The same without initialising: no value if there is neither a model on the ps nor a checkpoint.
  absl::StatusOr<std::optional<int64_t>> RecoverSession();

  // On all other tasks: waits until the chief has made the model ready, then runs local init and the ready check.
  // DeadlineExceeded: it wasn't ready within `max_wait`.
  absl::StatusOr<int64_t> WaitForSession(absl::Duration max_wait);

  // Notes that the ps no longer hold the trained values: from now on it is an error if they can't be restored.
  void LoseModel(const absl::Status& why) { lost_because_ = why; }

  // On the chief, in the middle of training: all tasks continue from the checkpoint at `path`. Returns its global step.
  absl::StatusOr<int64_t> Load(const std::string& path);

  // Ends what the algorithm has under way. It is no error if training has ended meanwhile: nothing is counted any more.
  [[nodiscard]] absl::Status FinishPending();

  bool joined() const { return joined_; }        // a ps may know of this task
  Saver* saver() const { return saver_.get(); }  // the chief's, with a checkpoint_dir, once it is prepared
  Scaffold& scaffold() const { return *options_.scaffold; }
  const SessionManagerOptions& options() const { return options_; }

 private:
  [[nodiscard]] absl::Status Join();
  [[nodiscard]] absl::Status OpenSaver();
  absl::StatusOr<std::unique_ptr<Saver>> NewSaver(const std::string& directory);
  absl::StatusOr<bool> HasModel();
  [[nodiscard]] absl::Status RestoreNamed(Saver::Saveables saveables);
  [[nodiscard]] absl::Status Initialize();
  absl::StatusOr<int64_t> FetchModel(absl::Time deadline);
  [[nodiscard]] absl::Status PullEverything();
  [[nodiscard]] absl::Status MakeReady(absl::Time deadline);
  [[nodiscard]] absl::Status AwaitReady(const std::function<std::vector<std::string>()>& missing, const char* step,
                                        absl::Time deadline);

  const SessionEnvironment environment_;
  const SessionManagerOptions options_;
  std::unique_ptr<Saver> saver_;
  absl::Status lost_because_;  // OK until the model was lost
  bool joined_ = false;
  bool was_ready_ = false;
};

}  // namespace muster
