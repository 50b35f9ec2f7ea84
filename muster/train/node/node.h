// One process of a cluster in its role: a ps serves, a worker has a client to every ps, one process alone has a store
// of its own. What the façade's Server wraps; torch-free. Used by one thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/algo/methods/algorithm.h"
#include "muster/base/os/stop_signal.h"
#include "muster/cluster/identity/task_config.h"
#include "muster/collective/rendezvous/rendezvous.h"
#include "muster/data/work_source.h"
#include "muster/observe/status_server.h"
#include "muster/observe/tracer.h"
#include "muster/store/client/clock_probe.h"
#include "muster/store/client/lease_keeper.h"
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
  LeaseOptions lease;
  // How long a ps may be out of reach before the session fails with Unavailable (exit code 138).
  absl::Duration patience = absl::Seconds(60);
  // … and how long once Ctrl-C or SIGTERM has come (exit code 130).
  absl::Duration stop_patience = absl::Seconds(5);
  // Who applies this worker's updates. On a ps: kServer keeps its memory to itself.
  ApplyChoice apply = ApplyChoice::kAuto;
  // With ps (or workers) on this host.
  TransportChoice transport = TransportChoice::kAuto;
  // In which precision gradients and parameters travel when the ps apply.
  WireOptions wire = {};
  // A ps: MUSTER_ARENA_FD of its environment; empty: memory of its own, which it loses when it is killed.
  std::string arena_fd;
  // Numbers below 1.2e-38 count as zero on the thread that makes the node (base/flush_denormals.h).
  bool flush_denormals = true;
  // Of a process that computes: how many torch uses; 0: by the cores and the cluster's tasks on this host.
  int threads = 0;
  // … and what torch is to compute on; unset: the task's (--device). A ps has no use for it.
  std::optional<ComputeDevice> device = std::nullopt;
  ArenaProbe* probe = nullptr;  // of tests and benches, for direct apply
  size_t part_bytes = StoreClientOptions().part_bytes;
};

// A queue that the processes of a job share by its name (docs/queues.md).
struct QueueOptions {
  uint64_t capacity = 0;                   // elements; at least 1
  std::vector<QueueComponent> components;  // what an element consists of
  std::optional<int> ps;                   // who keeps it; unset: by a hash of the name
  // How long opening it may take: a ps that is being started comes late.
  absl::Duration open_timeout = absl::Seconds(60);
};

// The rows of every epoch, shared out among the workers that train (docs/work_queue.md).
struct WorkQueueOptions {
  int64_t rows = 0;
  int64_t rows_per_unit = 0;  // a batch
  int64_t epochs = 1;         // 0: for ever
};

class Node {
 public:
  // A ps listens from here on, and the task's status page is there and its trace begins, if the task says so.
  // AlreadyExists: its port is in use. InvalidArgument: the status page's is; the trace can't be written.
  static absl::StatusOr<std::unique_ptr<Node>> Create(const TaskConfig& task, NodeOptions options);
  ~Node();

  const TaskConfig& task() const { return task_; }

  // "muster://host:port" of this task; empty where one process is all, and for an evaluator.
  std::string Target() const;
  // Device strings of what this process computes on: the CPU, then the GPU if it was told of one (ComputeOn).
  std::vector<std::string> Devices() const;

  // ps: serves until training has ended. FailedPrecondition on any other task: only a ps serves.
  [[nodiscard]] absl::Status Join();

  // What a session trains; the algorithm must outlive the session.
  void SetAlgorithm(Algorithm* algorithm) { algorithm_ = algorithm; }

  // For one session: FailedPrecondition while it is alive, and once it has told the ps that this task is done (one that
  // failed and was left without Close may have a successor). FailedPrecondition: no algorithm yet; a ps or an
  // evaluator. IsWrongConfiguration: an algorithm that trains on ps in
  // a cluster without, or the other way round.
  absl::StatusOr<SessionEnvironment> MakeSessionEnvironment();

  // This worker as a rank among all that train, the chief being rank 0. FailedPrecondition: the cluster doesn't say
  // where every worker is.
  absl::StatusOr<GroupOptions> MakeGroupOptions() const;

  // What the options or the task ask for. Whether there is one is for who knows torch to say.
  const ComputeDevice& asked_device() const { return options_.device ? *options_.device : task_.device(); }
  // What this process computes on from now on; the session's log and Devices say so.
  void ComputeOn(const ComputeDevice& device) { device_ = device; }

  // The queue of that name; the first who opens it makes it. Blocks. The handle is for all threads, and must not
  // outlive the node. Errors of QueueClient; IsWrongConfiguration: a cluster without ps has nobody who keeps queues.
  absl::StatusOr<std::unique_ptr<QueueHandle>> OpenQueue(const std::string& name, const QueueOptions& options);

  // This worker's end of the job's work queue; the same in every worker. It must not outlive the node. Nothing blocks
  // yet. InvalidArgument: options that none accepts. FailedPrecondition: this process has opened one; it doesn't train.
  // IsWrongConfiguration: a cluster without ps has nobody who shares out (Dataset::Shard needs nobody).
  absl::StatusOr<std::shared_ptr<WorkSource>> OpenWorkQueue(const std::string& name, const WorkQueueOptions& options);

  // How many ps hold the variables: 1 where one process is all, and without ps (a store of this worker's own).
  int num_ps() const;
  // The status page of every ps, JSON.
  absl::StatusOr<std::vector<std::string>> PsStatus();

 private:
  explicit Node(const TaskConfig& task, NodeOptions options);
  SessionPlace MakeSessionPlace() const;
  // FailedPrecondition: one is open, or it has ended this task's training.
  [[nodiscard]] absl::Status CheckFirstSession() const;
  [[nodiscard]] absl::Status StartObserving();
  [[nodiscard]] absl::Status StartPs();
  [[nodiscard]] absl::Status StartLocalStore();
  void StartClient(std::vector<std::string> ps_addresses);
  void StartHeartbeats();
  // One of several workers without ps, each of which has a store of its own that nobody else updates.
  bool HasOwnCopy() const;
  // What the options say, where there is something to choose.
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
  Track* training_ = nullptr;                // of the training thread; the tracer's
  std::unique_ptr<ClockProbe> clock_probe_;  // where the trace needs one

  // A ps.
  std::unique_ptr<PsServer> ps_;

  // Everyone else. In this order: what is destroyed first stops using what stands above it.
  TcpEventLoop loop_;
  std::unique_ptr<StopSignal> stop_signal_;
  std::unique_ptr<BackgroundThread> background_;  // of the local store
  std::unique_ptr<ArenaPort> port_;               // likewise
  LoopbackNetwork network_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<StoreService> local_store_;
  std::unique_ptr<Listener> local_listener_;
  std::unique_ptr<StoreClient> client_;
  std::unique_ptr<LeaseKeeper> lease_keeper_;
  std::shared_ptr<WorkQueue> work_;              // the local store's
  std::shared_ptr<WorkTally> tally_;             // once a work queue is opened
  std::unique_ptr<LocalQueues> queues_;          // of a process that is all, once one is opened
  std::unique_ptr<StatusServer> status_server_;  // of everyone but a ps, which has its own
};

}  // namespace muster
