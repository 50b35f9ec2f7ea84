// Simulates distributed training by a published algorithm, one minibatch after another, in plain doubles: the global
// values, every worker's own values, which worker waits for which. This file has what all algorithms share; the
// algorithms are in reference_algorithms.h. Obvious rather than fast; shares no code with the project. Test-only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "muster/algo/testing/reference_rules.h"

namespace muster {

struct ReferenceSettings {
  int window = 1;        // minibatches per commit
  int fetch_window = 0;  // minibatches between two fetches; 0: with each commit
  int replicas = 0;      // commits per synchronous round, at most one per worker; 0: no rounds
  int bound = -1;        // commits that a worker may be ahead of the slowest; -1: any number
  int total = 3;         // workers in the cluster
  bool mean = false;     // a commit is divided by the number of its minibatches
  std::optional<RuleSpec> worker_rule = {};
  RuleSpec server_rule = {};
  std::vector<double> rates = {};                             // that workers multiply their commits by; empty: 1
  std::function<double(int64_t staleness)> factor = nullptr;  // by which the server's rule goes slower; null: 1
  double compensation = 0;
  double gamma = 0;  // ADAG's; 0: none
  double alpha = 0;
  double momentum = 0;  // EAMSGD's
};

struct ReferenceWorker {
  explicit ReferenceWorker(int number, const std::optional<RuleSpec>& rule) : number(number), rule(rule) {}

  int number;
  ReferenceOptimizer rule;
  bool present = false;
  bool waiting = false;        // for a round, or for the slowest
  std::function<void()> then;  // what it does after it has waited
  ReferenceVector own;         // θ
  ReferenceVector base;        // θ₀
  ReferenceVector sum;         // gradients that haven't been committed
  ReferenceVector carried;     // differences from before a fetch
  ReferenceVector velocity;    // EAMSGD's
  int64_t minibatches = 0;     // in this life
  int since_commit = 0;
  int since_fetch = 0;
  int64_t clock = 0;       // commits, with a bound
  int64_t version = 0;     // number of updates when it pulled
  int64_t round = 0;       // the round that it computes for
  int64_t known_step = 0;  // the global step that it heard last
  int64_t staleness = 0;   // of its last commit
};

// The global values, and the workers with their own values.
class ReferenceCluster {
 public:
  // Returns the gradient of a worker's minibatch (numbered from 0 in each of its lives) at these values.
  using Gradient = std::function<ReferenceVector(int worker, int64_t minibatch, const ReferenceVector& at)>;
  using Worker = ReferenceWorker;

  // Starts a new life of a worker.
  void Join(int number) {
    Worker fresh(number, settings_.worker_rule);
    const int64_t slowest = Slowest();
    const int64_t clock = workers_[number].clock;
    fresh.clock = slowest == kNobody ? clock : std::max(clock, slowest);
    fresh.present = true;
    fresh.velocity.assign(global_.size(), 0);
    workers_[number] = std::move(fresh);
    BeginWindow(workers_[number]);
  }
  // Replaces the values and the step. No worker may be waiting.
  void Load(const ReferenceVector& values, int64_t step) {
    global_ = values;
    server_ = ReferenceOptimizer(settings_.server_rule);
    global_step_ = round_ = step;
    for (Worker& worker : workers_)
      if (worker.present) BeginWindow(worker);
  }

  const ReferenceSettings& settings() const { return settings_; }
  const ReferenceVector& global() const { return global_; }
  int64_t global_step() const { return global_step_; }
  int64_t updates() const { return updates_; }
  const Worker& worker(int number) const { return workers_[number]; }
  bool anybody_waits() const {
    return std::any_of(workers_.begin(), workers_.end(), [](const Worker& worker) { return worker.waiting; });
  }

 protected:
  ReferenceCluster(ReferenceSettings settings, Gradient gradient, ReferenceVector start)
      : settings_(std::move(settings)),
        gradient_(std::move(gradient)),
        global_(std::move(start)),
        server_(settings_.server_rule) {
    for (int i = 0; i < settings_.total; ++i) workers_.emplace_back(i, settings_.worker_rule);
  }
  ~ReferenceCluster() = default;

  ReferenceVector ComputeGradient(Worker& worker) { return gradient_(worker.number, worker.minibatches++, worker.own); }
  void BeginWindow(Worker& worker) const {
    worker.since_commit = worker.since_fetch = 0;
    worker.sum.assign(global_.size(), 0);
    worker.carried.assign(global_.size(), 0);
    Pull(worker);
  }
  void Pull(Worker& worker) const {
    worker.own = global_;
    NotePull(worker);
  }
  void NotePull(Worker& worker) const {
    worker.base = global_;
    worker.version = updates_;
    worker.round = round_;
    worker.known_step = global_step_;
  }
  // Returns the clock of the slowest present worker; the highest number if there is none.
  int64_t Slowest() const {
    int64_t slowest = kNobody;
    for (const Worker& worker : workers_)
      if (worker.present) slowest = std::min(slowest, worker.clock);
    return slowest;
  }

  static constexpr int64_t kNobody = std::numeric_limits<int64_t>::max();

  const ReferenceSettings settings_;
  const Gradient gradient_;
  ReferenceVector global_;
  ReferenceOptimizer server_;
  std::vector<Worker> workers_;
  int64_t global_step_ = 0;
  int64_t updates_ = 0;
  int64_t round_ = 0;
};

// Adds the workers' commits.
class ReferenceTraining : public ReferenceCluster {
 public:
  ReferenceTraining(ReferenceSettings settings, Gradient gradient, ReferenceVector start)
      : ReferenceCluster(std::move(settings), std::move(gradient), std::move(start)) {}
  virtual ~ReferenceTraining() = default;
  ReferenceTraining(const ReferenceTraining&) = delete;
  ReferenceTraining& operator=(const ReferenceTraining&) = delete;

  // Must not be called for a worker that is waiting.
  void Minibatch(int number) { Compute(workers_[number]); }
  void Finish(int number) {
    if (workers_[number].since_commit > 0) Flush(workers_[number]);
  }
  void FinishAll() {
    for (Worker& worker : workers_) Finish(worker.number);
    End();
  }
  // Kills the worker.
  void Leave(int number) {
    workers_[number].present = false;
    CheckRound();
    CheckClocks();
  }

 protected:
  // Called when all have finished: a worker with a model of its own takes the one that all have trained.
  virtual void End() {}
  void GiveAllTheGlobal() {
    for (Worker& worker : workers_) worker.own = global_;
  }
  // Runs one minibatch.
  virtual void Compute(Worker& worker) = 0;
  // Commits the last window, which has fewer minibatches than usual.
  virtual void Flush(Worker& worker) = 0;
  // Applies a commit, or a round's mean, to the global values. `worker` is the one that pulled for it.
  virtual void Apply(const Worker& worker, ReferenceVector change, double factor) = 0;

  // Calls `then` as soon as the worker may go on.
  void Commit(Worker& worker, ReferenceVector change, std::function<void()> then) {
    worker.since_commit = 0;
    worker.then = std::move(then);
    if (settings_.replicas > 0) return Contribute(worker, change);
    worker.staleness = updates_ - worker.version;
    Apply(worker, std::move(change), settings_.factor ? settings_.factor(worker.staleness) : 1);
    ++updates_;
    ++global_step_;
    if (settings_.bound < 0) return Resume(worker);
    ++worker.clock;
    worker.waiting = true;
    CheckClocks();
  }

 private:
  void Resume(Worker& worker) {
    worker.waiting = false;
    worker.known_step = global_step_;
    std::exchange(worker.then, nullptr)();
  }
  void CheckClocks() {
    if (settings_.bound < 0) return;
    const int64_t slowest = Slowest();
    for (Worker& worker : workers_)
      if (worker.waiting && worker.clock - settings_.bound <= slowest) Resume(worker);
  }
  void Contribute(Worker& worker, const ReferenceVector& change) {
    if (worker.round < round_) return Resume(worker);  // too late: it is lost
    if (contributors_.empty()) total_.assign(global_.size(), 0);
    for (size_t i = 0; i < total_.size(); ++i) total_[i] += change[i];
    contributors_.push_back(worker.number);
    worker.waiting = true;
    CheckRound();
  }
  void CheckRound() {
    int64_t present = 0;
    for (const Worker& worker : workers_) present += worker.present ? 1 : 0;
    const int64_t needed = std::min<int64_t>(settings_.replicas, present);
    const auto count = static_cast<int64_t>(contributors_.size());
    if (count == 0 || count < needed) return;
    ReferenceVector mean = total_;
    for (double& element : mean) element /= static_cast<double>(count);
    Apply(workers_[contributors_[0]], std::move(mean), 1);
    ++updates_;
    ++global_step_;
    ++round_;
    for (const int number : std::exchange(contributors_, {})) Resume(workers_[number]);
  }

  std::vector<int> contributors_;  // to the round being collected
  ReferenceVector total_;
};

}  // namespace muster
