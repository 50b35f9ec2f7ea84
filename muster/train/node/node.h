// One process of a cluster in its role: a ps serves, a worker has a client for every ps, and a process without a
// cluster has a store of its own. The façade's Server wraps it; torch-free. Used by one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/algo/algorithms/algorithm.h"
#include "muster/base/os/stop_signal.h"
#include "muster/cluster/identity/task_config.h"
#include "muster/collective/ring/rendezvous.h"
#include "muster/data/work_source.h"
#include "muster/observe/status_server.h"
#include "muster/observe/tracer.h"
#include "muster/store/calls/clock_probe.h"
#include "muster/store/calls/lease_keeper.h"
#include "muster/store/queues/queue_handle.h"
#include "muster/store/server/local_queues.h"
#include "muster/store/server/ps_server.h"
#include "muster/store/work/work_queue.h"
#include "muster/store/work/work_tally.h"
#include "muster/train/session/session.h"
#include "muster/train/watch/training_metrics.h"
#include "muster/transport/loopback/loopback_network.h"

namespace muster {

struct NodeOptions {
  JobToken token;
  LeaseOptions lease;  // the task's --stall_limit replaces its stall_limit
  // How long a ps may be out of reach before the session fails with Unavailable (exit code 138).
  absl::Duration patience = absl::Seconds(60);
  // The same once Ctrl-C or SIGTERM has arrived (exit code 130).
  absl::Duration stop_patience = absl::Seconds(5);
  // Which process applies this worker's updates. On a ps, kServer keeps its memory to itself. kAuto is kServer where
  // `transport` is kTcp: who asks for TCP wants updates to be sent.
  ApplyChoice apply = ApplyChoice::kAuto;
  // For connections with ps (or workers) on this host.
  TransportChoice transport = TransportChoice::kAuto;
  // The precision in which gradients and parameters travel when the ps apply the updates.
  WireOptions wire = {};
  // On a ps: MUSTER_ARENA_FD of its environment. Empty: private memory, which is lost when the ps is killed.
  std::string arena_fd;
  // On a ps: MUSTER_HEARD_FILE of its environment (base/files/counter_file.h). Empty: it is never cut off.
  std::string heard_file = "";
  // MUSTER_TASK_LIFE of the environment: how often the launcher has started this task. 0: unknown.
  uint64_t life = 0;
  // On the thread that creates the node, numbers below 1.2e-38 count as zero (base/os/flush_denormals.h).
  bool flush_denormals = true;
  // How many threads torch uses in a process that computes; 0: by the cores and the cluster's tasks on this host.
  int threads = 0;
  // The device on which torch computes; unset: the task's (--device). Unused on a ps.
  std::optional<ComputeDevice> device = std::nullopt;
  ArenaProbe* probe = nullptr;  // for tests and benches of direct apply
  size_t part_bytes = StoreClientOptions().part_bytes;
};

// A queue that the processes of a job share by its name (docs/queues.md).
struct QueueOptions {
  uint64_t capacity = 0;                   // elements; at least 1
  std::vector<QueueComponent> components;  // what an element consists of
  std::optional<int> ps;                   // the ps that keeps it; unset: by a hash of the name
  // How long opening it may take: a ps may still be starting.
  absl::Duration open_timeout = absl::Seconds(60);
};

// The rows of every epoch, divided among the workers that train (docs/work_queue.md).
struct WorkQueueOptions {
  int64_t rows = 0;
  int64_t rows_per_unit = 0;  // the size of a batch
  int64_t epochs = 1;         // 0: for ever
};

class Node {
 public:
  // From here on a ps listens, and if the task asks for them the status page is served and the trace begins.
  // AlreadyExists: its port is in use. InvalidArgument: the status page's port is in use; the trace can't be written; a
  // token that is too short (IsWrongConfiguration).
  static absl::StatusOr<std::unique_ptr<Node>> Create(const TaskConfig& task, NodeOptions options);
  ~Node();

  const TaskConfig& task() const { return task_; }

  // "muster://host:port" of this task, also in a cluster of this task alone; empty without a cluster, and for an
  // evaluator.
  std::string Target() const;
  // Device strings of what this process computes on: the CPU, then the GPU if ComputeOn has set one.
  std::vector<std::string> Devices() const;

  // On a ps: serves until training has ended. FailedPrecondition on any other task: only a ps serves.
  [[nodiscard]] absl::Status Join();

  // Sets what a session trains; the algorithm must outlive the session.
  void SetAlgorithm(Algorithm* algorithm) { algorithm_ = algorithm; }

  // What one session stands on. FailedPrecondition: a session is open, or one has told the ps that this task is done (a
  // session that failed and was left without Close may have a successor); there is no algorithm yet; this is a ps or an
  // evaluator. IsWrongConfiguration: an algorithm that trains on ps in a cluster without, or the other way round.
  absl::StatusOr<SessionEnvironment> MakeSessionEnvironment();

  // This worker as a rank among all that train; the chief is rank 0. FailedPrecondition: the cluster doesn't name every
  // worker's address.
  absl::StatusOr<GroupOptions> MakeGroupOptions() const;

  // The device that the options or the task ask for. Only code that knows torch can tell whether it exists.
  const ComputeDevice& asked_device() const { return options_.device ? *options_.device : task_.device(); }
  // Sets what this process computes on from now on; the session's log and Devices show it.
  void ComputeOn(const ComputeDevice& device) { device_ = device; }

  // Opens the queue of that name; the first process that opens it creates it. Blocks. The handle is for all threads,
  // and must not outlive the node. Errors of QueueClient; IsWrongConfiguration: a cluster without ps has no task that
  // keeps queues.
  absl::StatusOr<std::unique_ptr<QueueHandle>> OpenQueue(const std::string& name, const QueueOptions& options);

  // This worker's end of the job's work queue; call it equally in every worker. It must not outlive the node. Doesn't
  // block yet. InvalidArgument: options that are never accepted. FailedPrecondition: this process has opened one
  // already; this task doesn't train. IsWrongConfiguration: a cluster without ps has no task that divides the work (use
  // Dataset::Shard instead, which needs none).
  absl::StatusOr<std::shared_ptr<WorkSource>> OpenWorkQueue(const std::string& name, const WorkQueueOptions& options);

  // How many ps hold the variables: 1 for a process without a cluster and in a cluster without ps (each has a store of
  // its own).
  int num_ps() const;
  // The status page of every ps, as JSON.
  absl::StatusOr<std::vector<std::string>> PsStatus();

 private:
  explicit Node(const TaskConfig& task, NodeOptions options);
  SessionPlace MakeSessionPlace() const;
  // FailedPrecondition: a session is open, or one has ended this task's training.
  [[nodiscard]] absl::Status CheckFirstSession() const;
  [[nodiscard]] absl::Status StartObserving();
  [[nodiscard]] absl::Status StartPs();
  [[nodiscard]] absl::Status StartLocalStore();
  void StartClient(std::vector<std::string> ps_addresses);
  void StartHeartbeats();
  // True for one of several workers without ps: each has a store of its own that no other task updates.
  bool HasOwnCopy() const;
  LeaseOptions LeaseOfPs() const;
  // The options' choices where there is a choice, the only possible ones elsewhere.
  ApplyChoice ApplyOfClient() const;
  WireOptions WireOfClient() const;

  const TaskConfig task_;
  const NodeOptions options_;
  Algorithm* algorithm_ = nullptr;
  ComputeDevice device_;
  std::weak_ptr<const void> session_;  // expired: none is open

  // What is recorded and shown of this task.
  const MonotonicTraceClock trace_clock_;
  const absl::Time started_;
  TrainingMetrics metrics_;
  std::unique_ptr<Tracer> tracer_;
  Track* training_ = nullptr;                // the training thread's; owned by the tracer
  std::unique_ptr<ClockProbe> clock_probe_;  // where the trace needs one

  // On a ps.
  std::unique_ptr<PsServer> ps_;

  // On all other tasks, in this order: what is destroyed first stops using what stands above it.
  TcpEventLoop loop_;
  std::unique_ptr<StopSignal> stop_signal_;
  std::unique_ptr<BackgroundThread> background_;  // the local store's
  std::unique_ptr<ArenaListener> port_;           // likewise
  LoopbackNetwork network_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<StoreService> local_store_;
  std::unique_ptr<Listener> local_listener_;
  std::unique_ptr<StoreClient> client_;
  std::unique_ptr<LeaseKeeper> lease_keeper_;
  std::shared_ptr<WorkQueue> work_;              // the local store's
  std::shared_ptr<WorkTally> tally_;             // once a work queue is opened
  std::unique_ptr<LocalQueues> queues_;          // in a process without a cluster, once one is opened
  std::unique_ptr<StatusServer> status_server_;  // on all tasks but a ps, which has its own
};

}  // namespace muster
