// One run of a schedule: real stores, clients, algorithms and sessions in a simulated world, with the schedule's
// faults, watched from the first event to the last.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "muster/base/files/memory_file_system.h"
#include "muster/sim/deadly_probe.h"
#include "muster/sim/fault_schedule.h"
#include "muster/sim/ledger_source.h"
#include "muster/sim/planted_bugs.h"
#include "muster/sim/slow_disk.h"
#include "muster/sim/store_watch.h"
#include "muster/train/session/session.h"
#include "muster/transport/simulated/simulated_network.h"
#include "muster/transport/simulated/simulated_world.h"

namespace muster {

// The result of a run.
struct SimulationOutcome {
  std::optional<std::string> violation;  // the first one; nullopt if there was none
  uint64_t fingerprint = 0;
  uint64_t events = 0;
  absl::Duration simulated;
  int64_t pushes = 0;       // acknowledged
  int64_t minibatches = 0;  // computed
  int64_t lost = 0;         // those of them in no acknowledged push
};

class ClusterSimulation {
 public:
  // `bug` may be null. `listener`, if given, is told what happens.
  ClusterSimulation(const Schedule& schedule, PlantedClusterBug* bug,
                    std::function<void(absl::Time, const std::string&)> listener = nullptr);
  ~ClusterSimulation();

  // Call once.
  SimulationOutcome Run();

 private:
  // The memory of a ps.
  struct PsLife;
  struct Ps {
    SimulatedProcess* process = nullptr;
    std::shared_ptr<PsLife> life;                 // null while it is dead
    std::shared_ptr<ArenaMemory> memory;          // kept by its launcher
    std::shared_ptr<DeadlyProbe> probe;           // of the newest life
    std::optional<absl::Duration> restart_after;  // set when it is killed
    bool finished = false;
  };
  struct Worker {
    SimulatedProcess* process = nullptr;  // of the newest life
    SimulatedThread* training = nullptr;  // of that process
    bool running = false;                 // runs, or will be started again
    bool has_lived = false;               // a process was started
    int restarts = 0;
    bool succeeded = false;
    std::shared_ptr<bool> stop;  // Ctrl-C
  };

  void StartPs(int ps);
  void RunPs(int ps, SimulatedThread& thread);
  void StartWorker(int worker);
  // Trains until the session should stop or the process has made its share of minibatches.
  absl::Status Train(Session& session);
  // In a thread of its own beside that of the worker.
  void StartHeartbeats(SimulatedThread& thread, StoreClient& client);
  absl::Status RunWorker(int worker, SimulatedThread& thread, const bool& stop);
  void WorkerEnded(int worker, SimulatedProcess& process, const absl::Status& status);
  void Meet(const ScheduledFault& fault);
  void KillPs(const ScheduledFault& fault);
  void PsDied(int ps, SimulatedProcess& process);
  void KillWorker(int worker, absl::Duration dead_for);
  bool Over();
  void CheckCheckpoints();
  std::optional<std::string> WrongWith(const std::string& checkpoint);
  void CheckEnd(SimulatedWorld::Ending ending);
  void Violated(const std::string& what);
  // Returns whether `status` is OK or a code that this schedule may lead to.
  bool Allowed(const absl::Status& status) const;
  std::string TaskOf(int worker) const;
  PlacementResult Place() const;

  const Schedule schedule_;
  PlantedClusterBug* const bug_;
  SimulatedWorld world_;
  SimulatedNetwork network_;
  MemoryFileSystem disk_;
  MemoryFileSystem other_disk_;  // for ps that don't see the first
  SlowDisk slow_disk_;
  SlowDisk slow_other_disk_;
  PushLedger ledger_;
  ClusterTruth truth_{.checkpoints = CheckpointTruth(ledger_)};
  std::vector<std::string> addresses_;
  std::vector<Ps> ps_;
  std::vector<Worker> workers_;
  uint64_t incarnations_ = 0;
  int worker_processes_ = 0;  // alive, including replaced ones
  std::optional<absl::Time> workers_ended_;
  std::optional<std::string> violation_;
};

}  // namespace muster
