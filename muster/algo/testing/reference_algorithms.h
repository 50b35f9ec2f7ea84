// The algorithms for reference_training.h, written from their papers: commits of gradients and of differences, and
// elastic averaging one worker at a time and all at once. Test-only.
#pragma once

#include <memory>
#include <utility>

#include "muster/algo/testing/reference_training.h"

namespace muster {

enum class ReferenceKind {
  kGradients,        // commits are sums of gradients, for a rule that descends
  kDifferences,      // how far the worker has moved, which is added
  kPseudoGradients,  // the reverse, for a rule that descends
  kElastic,          // AEASGD, EAMSGD
  kElasticRounds,    // EASGD
};

// Workers that commit every window and then go on from the global values.
class ReferenceCommits final : public ReferenceTraining {
 public:
  ReferenceCommits(ReferenceKind kind, ReferenceSettings settings, Gradient gradient, ReferenceVector start)
      : ReferenceTraining(std::move(settings), std::move(gradient), std::move(start)), kind_(kind) {}

 private:
  void Compute(Worker& worker) override {
    const ReferenceVector g = ComputeGradient(worker);
    for (size_t i = 0; i < g.size(); ++i) worker.sum[i] += g[i];
    worker.rule.Move(worker.own, g);
    ++worker.since_commit;
    ++worker.since_fetch;
    const bool fetches = settings_.fetch_window == 0 || worker.since_fetch == settings_.fetch_window;
    if (worker.since_commit == settings_.window) {
      CommitWindow(worker, fetches);
    } else if (settings_.fetch_window > 0 && fetches) {
      for (size_t i = 0; i < g.size(); ++i) worker.carried[i] += worker.own[i] - worker.base[i];
      worker.since_fetch = 0;
      Pull(worker);
    }
  }
  void Flush(Worker& worker) override { CommitWindow(worker, true); }
  void CommitWindow(Worker& worker, bool fetches) {
    ReferenceVector change = worker.sum;
    const double sign = kind_ == ReferenceKind::kPseudoGradients ? -1 : 1;
    for (size_t i = 0; i < change.size(); ++i) {
      if (kind_ != ReferenceKind::kGradients) change[i] = sign * (worker.carried[i] + worker.own[i] - worker.base[i]);
      if (settings_.mean) change[i] /= worker.since_commit;
      if (!settings_.rates.empty()) change[i] *= settings_.rates[worker.number];
      worker.sum[i] = worker.carried[i] = 0;
    }
    Commit(worker, std::move(change), [this, &worker, fetches] {
      if (!fetches) {
        worker.base = worker.own;
        return;
      }
      worker.since_fetch = 0;
      Pull(worker);
    });
  }
  void Apply(const Worker& worker, ReferenceVector change, double factor) override {
    for (size_t i = 0; i < change.size(); ++i) {
      const double moved = global_[i] - worker.base[i];
      if (settings_.compensation > 0) change[i] += settings_.compensation * change[i] * change[i] * moved;
      if (settings_.gamma > 0) change[i] /= moved * moved / settings_.gamma + 1;
    }
    server_.Move(global_, change, factor);
  }

  const ReferenceKind kind_;
};

// arXiv 1412.6651, algorithms 1 and 2: the gradient is taken at the values before the exchange; after it the worker
// moves by both.
class ReferenceElastic final : public ReferenceTraining {
 public:
  using ReferenceTraining::ReferenceTraining;

 private:
  void Compute(Worker& worker) override {
    ReferenceVector force(global_.size());
    if (worker.since_commit == settings_.window) force = Exchange(worker);
    for (size_t i = 0; i < force.size() && settings_.momentum > 0; ++i) {
      worker.velocity[i] *= settings_.momentum;
      worker.own[i] += worker.velocity[i];
    }
    const ReferenceVector g = ComputeGradient(worker);
    worker.rule.Move(worker.own, g);
    for (size_t i = 0; i < force.size(); ++i) {
      worker.velocity[i] -= settings_.worker_rule->learning_rate * g[i];
      worker.own[i] -= force[i];
    }
    ++worker.since_commit;
  }
  void Flush(Worker& worker) override {
    Exchange(worker);
    worker.own = global_;  // at its end a worker takes what all have trained
  }
  ReferenceVector Exchange(Worker& worker) {
    ReferenceVector force(global_.size());
    for (size_t i = 0; i < force.size(); ++i) force[i] = settings_.alpha * (worker.own[i] - global_[i]);
    Commit(worker, force, [this, &worker] { NotePull(worker); });
    return force;
  }
  void Apply(const Worker&, ReferenceVector force, double) override {
    for (size_t i = 0; i < force.size(); ++i) global_[i] += force[i];
  }
};

// arXiv 1412.6651, equations 2.3 and 2.4: x ← x − η g(x) − α (x − x̃), and x̃ ← (1 − β) x̃ + β · the mean of the workers'
// x, where β = α · workers.
class ReferenceElasticRounds final : public ReferenceTraining {
 public:
  using ReferenceTraining::ReferenceTraining;

 private:
  void End() override { GiveAllTheGlobal(); }
  void Compute(Worker& worker) override {
    if (worker.since_commit < settings_.window) return Descend(worker, ReferenceVector(global_.size()));
    Exchange(worker, [this, &worker](const ReferenceVector& force) { Descend(worker, force); });
  }
  void Flush(Worker& worker) override {
    Exchange(worker, [&worker](const ReferenceVector& force) {
      for (size_t i = 0; i < force.size(); ++i) worker.own[i] -= force[i];
    });
  }
  void Exchange(Worker& worker, std::function<void(const ReferenceVector& force)> then) {
    ReferenceVector apart(global_.size());
    ReferenceVector force(global_.size());
    for (size_t i = 0; i < apart.size(); ++i) {
      apart[i] = worker.own[i] - worker.base[i];
      force[i] = settings_.alpha * apart[i];
    }
    Commit(worker, apart, [this, &worker, force, then = std::move(then)] {
      NotePull(worker);
      then(force);
    });
  }
  void Descend(Worker& worker, const ReferenceVector& force) {
    const ReferenceVector g = ComputeGradient(worker);
    worker.rule.Move(worker.own, g);
    for (size_t i = 0; i < force.size(); ++i) worker.own[i] -= force[i];
    ++worker.since_commit;
  }
  void Apply(const Worker&, ReferenceVector mean, double) override {
    for (size_t i = 0; i < mean.size(); ++i) global_[i] += settings_.alpha * settings_.total * mean[i];
  }
};

inline std::unique_ptr<ReferenceTraining> MakeReference(ReferenceKind kind, const ReferenceSettings& settings,
                                                        ReferenceTraining::Gradient gradient, ReferenceVector start) {
  if (kind == ReferenceKind::kElastic)
    return std::make_unique<ReferenceElastic>(settings, std::move(gradient), std::move(start));
  if (kind == ReferenceKind::kElasticRounds)
    return std::make_unique<ReferenceElasticRounds>(settings, std::move(gradient), std::move(start));
  return std::make_unique<ReferenceCommits>(kind, settings, std::move(gradient), std::move(start));
}

}  // namespace muster
