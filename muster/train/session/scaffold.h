// What a program adds to the creation of its model: how values are made, when they are complete, what is saved and
// summarised beside them. TensorFlow's Scaffold (python/training/monitored_session.py); its pieces are functions here,
// which run in the process and on the thread of the session. Used by one thread.
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

// What the session's saver keeps, and how long; see SaverOptions.
struct ScaffoldSaver {
  int keep_checkpoint_max = 5;
  double keep_checkpoint_every_n_hours = 10000;
  bool allow_older_checkpoint = false;
  std::vector<Saveable> saveables;
};

// An empty function does nothing. If one fails, the session's start fails with its error.
struct ScaffoldOptions {
  // Called on the chief, when there is no checkpoint and the ps hold no model: changes this process's values, which are
  // then given to the ps. `init` first, then `init_fn` (say, to load the lower layers of another model).
  std::function<absl::Status()> init;
  std::function<absl::Status()> init_fn;
  // Called on every task when the values have arrived, and again after every recovery: initialises what this process
  // keeps for itself.
  std::function<absl::Status()> local_init;
  // Names of what isn't ready yet, before and after local_init; empty: ready. The chief fails if there are any; a
  // worker asks again until its max_wait_secs are over.
  std::function<std::vector<std::string>()> ready_for_local_init;
  std::function<std::vector<std::string>()> ready;
  // Replaces the saver's options of the session: giving both is an error.
  std::optional<ScaffoldSaver> saver;
  // Makes the whole of the chief's summaries, instead of what the step registered: called when they are due. Must be
  // set before the session is created.
  SummaryOp summary;
};

class Scaffold {
 public:
  explicit Scaffold(ScaffoldOptions options = {}) : options_(std::move(options)) {}

  // Call it before the session is created, in a hook's Begin, say. FailedPrecondition: finalized.
  [[nodiscard]] absl::Status Change(absl::FunctionRef<void(ScaffoldOptions&)> change);
  // Forbids changes from now on. The session calls it after the hooks' Begin; further calls, at a recovery or by a
  // second session, do nothing.
  void Finalize();
  bool finalized() const { return finalized_; }
  const ScaffoldOptions& options() const { return options_; }

 private:
  ScaffoldOptions options_;
  bool finalized_ = false;
};

}  // namespace muster
