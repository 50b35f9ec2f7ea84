// What a session needs from its process: made by Node, or by a test from simulated parts.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "muster/algo/algorithms/algorithm.h"
#include "muster/base/clock.h"
#include "muster/base/files/file_system.h"
#include "muster/base/wait_clock.h"
#include "muster/observe/tracer.h"
#include "muster/store/client/store_client.h"
#include "muster/train/hook_api/session_place.h"
#include "muster/train/saving/saver.h"
#include "muster/train/watch/training_metrics.h"
#include "muster/transport/event_loop.h"

namespace muster {

// All pointers are borrowed for the session's life.
struct SessionEnvironment {
  StoreClient* client = nullptr;
  Algorithm* algorithm = nullptr;
  EventLoop* loop = nullptr;
  FileSystem* files = nullptr;
  const Clock* clock = nullptr;
  bool is_chief = false;  // what the cluster says
  // The client's store belongs to this worker alone, so it acts as that store's chief, whichever task is the cluster's
  // chief.
  bool own_store = false;
  std::string target;  // the server's
  SessionPlace place;
  std::function<bool()> stop_requested = [] { return false; };
  bool leaves_on_signal = false;       // TaskConfig::leaves_on_signal: a stop isn't the end of training
  TrainingMetrics* metrics = nullptr;  // null: nothing is kept
  // Called once the ps know the task: heartbeats begin.
  std::function<void()> on_joined = [] {};
  Tracer* tracer = nullptr;                        // null: hooks can't record
  std::vector<Saveable> saveables;                 // kept in every checkpoint, whatever else the session keeps
  const WaitClock* wait_clock = &RealWaitClock();  // for the session's threads
  std::shared_ptr<const void> open;                // expires with the session: until then the server has no other
};

// Returns whether a session that ends now leaves training to its task's next start, without telling the ps that the
// task is done.
inline bool LeavesTraining(const SessionEnvironment& environment) {
  return environment.leaves_on_signal && environment.stop_requested();
}
// Returns what such a session's end is.
inline absl::Status LeftTraining() {
  return absl::UnavailableError(
      "this task was asked to end by a signal while it trained: it leaves training to its next start");
}

}  // namespace muster
