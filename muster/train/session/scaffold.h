// What a program adds to the making of its model: how values come to be, when they are complete, what is saved and
// written beside them. TensorFlow's Scaffold (python/training/monitored_session.py), whose pieces are functions here:
// they run in the process and on the thread of the session. Used by one thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "muster/summary/step_summaries.h"
#include "muster/train/saving/saver.h"

namespace muster {

// What the session's saver keeps and how long; see SaverOptions.
struct ScaffoldSaver {
  int keep_checkpoint_max = 5;
  double keep_checkpoint_every_n_hours = 10000;
  bool allow_older_checkpoint = false;
  std::vector<Saveable> saveables;
};

// An empty function does nothing; an error of one is the error of the session's start.
struct ScaffoldOptions {
  // The chief, when there is no checkpoint and the ps hold no model: changes this process's values, which are then
  // given to the ps. `init` first, then `init_fn` (say, to load the lower layers of another model).
  std::function<absl::Status()> init;
  std::function<absl::Status()> init_fn;
  // Everyone, when the values are here, and again after every recovery: what this process keeps for itself.
  std::function<absl::Status()> local_init;
  // Names of what isn't ready yet, before and after local_init; empty: ready. The chief fails if there are any; a
  // worker asks again until its max_wait_secs are over.
  std::function<std::vector<std::string>()> ready_for_local_init;
  std::function<std::vector<std::string>()> ready;
  // Instead of the saver's options of the session: giving both is an error.
  std::optional<ScaffoldSaver> saver;
  // The whole of what the chief's summaries say, instead of what the step registered: called when they are due. Given
  // before the session is made.
  SummaryOp summary;
};

class Scaffold {
 public:
  explicit Scaffold(ScaffoldOptions options = {}) : options_(std::move(options)) {}

  // Before the session is created, a hook's Begin say. FailedPrecondition: finalized.
  [[nodiscard]] absl::Status Change(absl::FunctionRef<void(ScaffoldOptions&)> change);
  // From now on it can't be changed. The session calls it after the hooks' Begin; again, at a recovery or by a second
  // session, it does nothing.
  void Finalize();
  bool finalized() const { return finalized_; }
  const ScaffoldOptions& options() const { return options_; }

 private:
  ScaffoldOptions options_;
  bool finalized_ = false;
};

}  // namespace muster
