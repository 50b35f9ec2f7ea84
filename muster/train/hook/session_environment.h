// What a session stands on in its process: made by Node, or by a test of simulated parts.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "muster/algo/methods/algorithm.h"
#include "muster/base/clock.h"
#include "muster/base/files/file_system.h"
#include "muster/base/wait_clock.h"
#include "muster/observe/tracer.h"
#include "muster/store/client/store_client.h"
#include "muster/train/hook/session_place.h"
#include "muster/train/saving/saver.h"
#include "muster/train/watch/training_metrics.h"
#include "muster/transport/event_loop.h"

namespace muster {

// All borrowed for the session's life.
struct SessionEnvironment {
  StoreClient* client = nullptr;
  Algorithm* algorithm = nullptr;
  EventLoop* loop = nullptr;
  FileSystem* files = nullptr;
  const Clock* clock = nullptr;
  bool is_chief = false;  // what the cluster says
  // The client's store is this worker's alone, who is its chief too, whoever is the cluster's.
  bool own_store = false;
  std::string target;  // the server's
  SessionPlace place;
  std::function<bool()> stop_requested = [] { return false; };
  TrainingMetrics* metrics = nullptr;  // null: nothing is kept
  // Told once the task is known to the ps: heartbeats begin.
  std::function<void()> on_joined = [] {};
  Tracer* tracer = nullptr;                        // null: hooks can't record
  std::vector<Saveable> saveables;                 // kept in every checkpoint, whatever else the session keeps
  const WaitClock* wait_clock = &RealWaitClock();  // of the session's threads
  std::shared_ptr<const void> open;                // lives as long as the session: the server has no other meanwhile
};

}  // namespace muster
