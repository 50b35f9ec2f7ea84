// The training API for torch programs: Server, Replica, trainers, MonitoredTrainingSession. Thin: every class here
// wraps a torch-free one and turns its absl::Status into a muster::Error. Used by one thread.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "muster/algo/algorithm.h"
#include "muster/algo/all_reduce.h"
#include "muster/algo/synchronous.h"
#include "muster/checkpoint/checkpoint_reader.h"
#include "muster/cluster/placement.h"
#include "muster/optim/update_rule.h"
#include "muster/torch_bridge/module_source.h"
#include "muster/train/error.h"
#include "muster/train/node.h"
#include "muster/train/session.h"

namespace muster {

// This process in its cluster (TensorFlow's tf.train.Server). Sets up the log and the handling of uncaught Errors; the
// job's token comes from the environment (MUSTER_JOB_TOKEN). Throws Error: a port in use.
class Server {
 public:
  explicit Server(const TaskConfig& task, NodeOptions options = {});
  Server(const ClusterSpec& cluster, const std::string& job, int index, NodeOptions options = {});
  // One process that is its own cluster.
  static std::unique_ptr<Server> CreateLocal();

  // A ps: serves until training has ended, then returns the process's exit code.
  int Join();
  std::string Target() const { return node_->Target(); }
  std::vector<std::string> Devices() const { return node_->Devices(); }
  const TaskConfig& task() const { return node_->task(); }
  Node& node() { return *node_; }

 private:
  std::unique_ptr<Node> node_;
};

struct ReplicaOptions {
  Placement placement = Placement::kRoundRobin;
  Partitioning partitioning;
  // Device strings of variables by name ("/job:ps/task:1"): these are not placed by the strategy. See module_devices.h.
  absl::flat_hash_map<std::string, std::string> devices;
};

// This process's copy of the model, its parameters moved into flat memory (module_source.h). Throws Error.
class Replica {
 public:
  Replica(Server& server, std::shared_ptr<torch::nn::Module> module, ReplicaOptions options = {});
  template <typename Module>
  Replica(Server& server, const torch::nn::ModuleHolder<Module>& module, ReplicaOptions options = {})
      : Replica(server, std::static_pointer_cast<torch::nn::Module>(module.ptr()), std::move(options)) {}

  Server& server() { return server_; }
  ModuleSource& source() { return *source_; }
  const PlacementResult& placement() const { return placement_; }

  // Variables and buffers from a checkpoint, without a cluster: what an evaluator does. Tables of rows are then in this
  // process's memory, as a whole. Throws Error.
  void Load(const CheckpointReader& checkpoint);

 private:
  Server& server_;
  std::unique_ptr<ModuleSource> source_;
  PlacementResult placement_;
};

// An algorithm at work on a replica. Make it before the session.
class Trainer {
 public:
  Trainer(Replica& replica, std::unique_ptr<Algorithm> algorithm);
  Replica& replica() { return replica_; }

 private:
  Replica& replica_;
  std::unique_ptr<Algorithm> algorithm_;
};

// An update a minibatch, nobody waits for anybody (algo/asynchronous.h). The ps apply the optimizer:
// `Adam({.learning_rate = 0.001})`, or rules of their own for groups of variables.
Trainer Asynchronous(Replica& replica, const OptimizerSpec& optimizer);

// The mean of the gradients of N of M workers makes an update, and all wait for it (algo/synchronous.h).
Trainer Synchronous(Replica& replica, const OptimizerSpec& optimizer, const SynchronousOptions& options);

// Asynchronous, but nobody gets more than `bound` minibatches ahead of the slowest worker (algo/bounded_staleness.h).
Trainer BoundedStaleness(Replica& replica, const OptimizerSpec& optimizer, uint32_t bound);

// The mean of all workers' gradients makes an update, as with Synchronous, but the cluster has no ps: each worker
// applies it to its own copy (algo/all_reduce.h).
Trainer AllReduce(Replica& replica, const OptimizerSpec& optimizer, const AllReduceOptions& options = {});

// Asynchronous, one step stale: gradients are sent and values fetched while the next minibatch is computed
// (algo/pipelined.h). Through the ps, whatever `apply` says but kDirect.
Trainer Pipelined(Replica& replica, const OptimizerSpec& optimizer);

class MonitoredTrainingSession {
 public:
  // Blocks until the model is initialised (or restored from options.checkpoint_dir). Throws Error.
  MonitoredTrainingSession(Server& server, SessionOptions options,
                           std::vector<std::shared_ptr<SessionHook>> hooks = {});
  // Closes, unless an exception is on its way. May throw Error (the last checkpoint can fail).
  ~MonitoredTrainingSession() noexcept(false);
  MonitoredTrainingSession(const MonitoredTrainingSession&) = delete;
  MonitoredTrainingSession& operator=(const MonitoredTrainingSession&) = delete;

  bool ShouldStop() const { return session_->ShouldStop(); }
  void RequestStop() { session_->RequestStop(); }

  // One step: `loss` runs the module on this worker's next minibatch and returns a scalar. Throws Error.
  void Run(Trainer& trainer, std::function<torch::Tensor()> loss);

  // The chief, between two runs: training goes on from the checkpoint at `path` on every ps; the workers' next step
  // pulls its values. Throws Error, and everything stays as it was.
  void Restore(const std::string& path);

  // A value of this step for summaries and LoggingTensor; call it inside `loss`. As summary::Scalar (summaries.h).
  void AddScalar(const std::string& name, double value) { session_->AddScalar(name, value); }

  // Ends hooks, tells the ps. Once; the destructor does it otherwise. Throws Error.
  void Close();

  bool is_chief() const { return session_->is_chief(); }
  int64_t global_step() const { return session_->global_step(); }
  std::string last_checkpoint() const { return session_->last_checkpoint(); }

 private:
  std::unique_ptr<Session> session_;
  const int exceptions_;
};

}  // namespace muster
