// The training API for torch programs: Server, Replica, trainers, MonitoredSession, MonitoredTrainingSession; the other
// session objects are in sessions.h. Thin: every class here
// wraps a torch-free one and turns its absl::Status into a muster::Error. Used by one thread.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "muster/algo/methods/algorithm.h"
#include "muster/algo/methods/all_reduce.h"
#include "muster/algo/methods/synchronous.h"
#include "muster/checkpoint/checkpoint_reader.h"
#include "muster/cluster/placement/placement.h"
#include "muster/optim/update_rule.h"
#include "muster/torch_bridge/facade/shared_queue.h"
#include "muster/torch_bridge/module/module_source.h"
#include "muster/train/node/node.h"
#include "muster/train/session/session.h"
#include "muster/train/threads/error.h"

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
  // The queue that all tasks of the job mean by this name; the first who opens it makes it (docs/queues.md). It must
  // not outlive the server. Throws Error: another capacity or other components than the first's.
  SharedQueue OpenQueue(const std::string& name, const QueueOptions& options);
  // This worker's end of the job's work queue, which every worker opens alike: each example goes to one of them an
  // epoch, whoever comes and goes (docs/work_queue.md); for Dataset::ShareBy. Checkpoints keep it by themselves. It
  // must not outlive the server. Throws Error: a cluster without ps; this process has one; rows or units of 0.
  std::shared_ptr<WorkSource> OpenWorkQueue(const std::string& name, const WorkQueueOptions& options);
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
  // Where the module computes, once there is a session: what the minibatches are to be moved to.
  torch::Device device() const { return source_->device(); }

  // Variables and buffers from a checkpoint, without a cluster: what an evaluator does. Tables of rows are then in this
  // process's memory, as a whole. Throws Error.
  void Load(const CheckpointReader& checkpoint);

 private:
  Server& server_;
  std::unique_ptr<ModuleSource> source_;
  PlacementResult placement_;
};

// An algorithm at work on a replica. Make it before the session, which trains by the last one that its server was
// given.
class Trainer {
 public:
  Trainer(Replica& replica, std::unique_ptr<Algorithm> algorithm);
  Replica& replica() { return replica_; }
  const Algorithm& algorithm() const { return *algorithm_; }

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

// What AllReduce makes of a server: how its group is joined, and `options` with what it knows of the cluster.
AllReduceAlgorithm::Join AllReduceJoinOf(Server& server);
AllReduceOptions AllReduceOptionsOf(Server& server, AllReduceOptions options);

// Asynchronous, one step stale: gradients are sent and values fetched while the next minibatch is computed
// (algo/pipelined.h). Through the ps, whatever `apply` says but kDirect.
Trainer Pipelined(Replica& replica, const OptimizerSpec& optimizer);

// What the sessions' classes share. The loss function of a step is the source's for the step only, as it refers to the
// caller's variables.
class LossScope {
 public:
  // `trains`: the session's algorithm. Throws Error (FailedPrecondition): the trainer's is another; a step of its
  // replica is under way.
  LossScope(Trainer& trainer, const Algorithm& trains, std::function<torch::Tensor()> loss);
  ~LossScope();
  LossScope(const LossScope&) = delete;
  LossScope& operator=(const LossScope&) = delete;

 private:
  ModuleSource& source_;
};

// Of this process, on the devices that `config` and the task say, with torch's random generator in every checkpoint:
// the chief's goes on where it was. Throws Error.
SessionEnvironment MakeTorchEnvironment(Server& server, const SessionConfig& config);

// Steps without hooks and without recovery; of a session, for its life.
class RawSession {
 public:
  explicit RawSession(Session& session) : session_(session) {}
  // One step: `loss` runs the module on this worker's next minibatch and returns a scalar. Throws Error.
  StepResult Run(Trainer& trainer, std::function<torch::Tensor()> loss);

 private:
  Session& session_;
};

// A session without hooks but those it is given (TensorFlow's MonitoredSession); the base of the others.
class MonitoredSession {
 public:
  // Who makes the model ready: ChiefSessionCreator, WorkerSessionCreator or one of the program's own. Blocks until it
  // is. Throws Error.
  MonitoredSession(Server& server, std::shared_ptr<SessionCreator> creator,
                   std::vector<std::shared_ptr<SessionHook>> hooks = {}, double stop_grace_period_secs = 120);
  // Closes, unless an exception is on its way. May throw Error (the last checkpoint can fail).
  virtual ~MonitoredSession() noexcept(false);
  MonitoredSession(const MonitoredSession&) = delete;
  MonitoredSession& operator=(const MonitoredSession&) = delete;

  bool ShouldStop() const { return session_->ShouldStop(); }
  void RequestStop() { session_->RequestStop(); }

  // One step: `loss` runs the module on this worker's next minibatch and returns a scalar. Throws Error: after a stop,
  // after Close, within a step, a trainer that isn't the session's, and what went wrong in the step. An Error of
  // OutOfRange in `loss` is a clean end (ShouldStop).
  void Run(Trainer& trainer, std::function<torch::Tensor()> loss);

  // What a step function is given (TensorFlow's StepContext); for one call.
  class StepContext {
   public:
    StepContext(Session& session, muster::StepContext& context) : session_(session), context_(context) {}
    RawSession session() { return RawSession(session_); }  // no hook sees its steps
    void RunWithHooks(Trainer& trainer, std::function<torch::Tensor()> loss);
    // The session stops. Doesn't return: leaves `step_fn`, from within a loss of it too, and RunStepFn returns. Throws
    // the end of the input, an Error of OutOfRange, as TensorFlow's StopIteration: whoever catches it goes on.
    [[noreturn]] void RequestStop();

   private:
    Session& session_;
    muster::StepContext& context_;
  };
  // Calls `step_fn` once, or after a recovery again from its beginning. Throws as Run, and what `step_fn` throws.
  void RunStepFn(const std::function<void(StepContext&)>& step_fn);

  // The chief, between two runs: training goes on from the checkpoint at `path` on every ps; the workers' next step
  // pulls its values. Throws Error, and everything stays as it was.
  void Restore(const std::string& path);

  // A value of this step for summaries and LoggingTensor; call it inside `loss`. As summary::Scalar (summaries.h).
  void AddScalar(const std::string& name, double value) { session_->AddScalar(name, value); }

  // What a hook has fed for this step (FeedFn); call it inside `loss`. Throws Error: nobody has, or of another type.
  template <typename T>
  T Fed(const std::string& name) const {
    return ValueOrThrow(session_->Fed<T>(name));
  }

  // Ends hooks and threads, tells the ps; a second call does nothing. The destructor does it otherwise. Throws Error.
  void Close();

  bool is_chief() const { return session_->is_chief(); }
  int64_t global_step() const { return session_->global_step(); }
  std::string last_checkpoint() const { return session_->last_checkpoint(); }
  // Of the threads that training needs beside this one.
  Coordinator& coordinator() { return session_->coordinator(); }

 protected:
  MonitoredSession(Server& server, SessionOptions options, std::vector<std::shared_ptr<SessionHook>> hooks);
  Session& session() { return *session_; }

 private:
  std::unique_ptr<Session> session_;
  const int exceptions_;
};

// With the chief's hooks of TensorFlow's MonitoredTrainingSession: see SessionOptions.
class MonitoredTrainingSession final : public MonitoredSession {
 public:
  // Blocks until the model is initialised (or restored from options.checkpoint_dir). Throws Error.
  MonitoredTrainingSession(Server& server, SessionOptions options,
                           std::vector<std::shared_ptr<SessionHook>> hooks = {});
};

}  // namespace muster
