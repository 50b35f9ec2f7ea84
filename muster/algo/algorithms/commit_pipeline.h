// The pipeline that implements every algorithm with a ps, each as a setting of CommitSpec (commit_spec.h;
// docs/algorithms.md): a worker computes minibatches and moves its own values by its own rule; after every `window`
// minibatches it commits the result and pulls. Each commit is applied exactly once (store/client/store_client.h).
//
// Within a window nothing is sent except rows of tables: Step returns the global step and the staleness of the last
// commit.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "muster/algo/algorithms/algorithm.h"
#include "muster/algo/algorithms/commit_spec.h"
#include "muster/algo/sources/gradient_sum.h"
#include "muster/algo/sources/local_rule.h"
#include "muster/algo/sources/table_rows.h"
#include "muster/store/client/elastic_exchange.h"
#include "muster/store/client/value_set.h"

namespace muster {

class CommitPipeline final : public Algorithm {
 public:
  // `source` must outlive it. `spec` must fit `server_rule`, as PlanAlgorithm ensures.
  CommitPipeline(GradientSource& source, PlacementResult placement, const OptimizerSpec& server_rule,
                 const CommitSpec& spec);

  GradientSource& source() override { return source_; }
  const ModelBinding& binding() const override { return binding_; }
  uint32_t window() const override { return spec_.window; }
  // Begins a new window with the values that the session then pulls. Keeps the worker's slots.
  void Begin(StoreClient& client) override;
  // A step that commits blocks for as long as the gate does.
  absl::StatusOr<StepResult> Step(StoreClient& client) override;
  void End() override { ending_ = true; }
  // After End: commits the minibatches of the last window and pulls the global values into the source. Before End: does
  // nothing, and the window goes on.
  [[nodiscard]] absl::Status FinishPending(StoreClient& client) override;

  // Number of this worker's commits that were dropped: too late for their round, or not finite.
  int64_t dropped() const { return dropped_; }

 private:
  using Memory = std::vector<std::vector<std::byte>>;  // one entry per variable; empty if it isn't trainable

  bool trainable(size_t i) const { return binding_.variables[i].kind == VariableKind::kTrainable; }
  bool exchanges() const { return spec_.kind == CommitKind::kExchange || spec_.kind == CommitKind::kSharedExchange; }
  // True if commits are differences from values that must be remembered.
  bool has_delta() const { return spec_.kind == CommitKind::kDelta || spec_.kind == CommitKind::kPseudoGradient; }
  bool needs_base() const { return has_delta() || spec_.kind == CommitKind::kSharedExchange || spec_.compensation > 0; }
  // True if fetches have their own period.
  bool fetches_apart() const { return spec_.fetch_window != 0 && spec_.fetch_window != spec_.window; }

  Memory MakeMemory() const;
  void StartWindow();
  void TakeBase();
  absl::StatusOr<double> ComputeGradients(StoreClient& client);
  [[nodiscard]] absl::Status MoveOwnValues(StoreClient& client);
  [[nodiscard]] absl::Status CommitOrFetch(StoreClient& client);
  [[nodiscard]] absl::Status Commit(StoreClient& client, bool pulls);
  [[nodiscard]] absl::Status Fetch(StoreClient& client);
  // Asks the ps for an exchange. The worker's own values move later, in MoveByExchange, unless the exchange was
  // dropped.
  [[nodiscard]] absl::Status Exchange(StoreClient& client);
  absl::StatusOr<StorePushResult> ExchangeShared(StoreClient& client);
  void MoveByExchange();
  StorePushOptions OptionsOf(StoreClient& client) const;
  void FindDelta(size_t i);
  void Note(const StorePushResult& pushed);

  GradientSource& source_;
  const CommitSpec spec_;
  ModelBinding binding_;
  TableRows tables_{source_};
  std::optional<LocalRule> rule_;
  std::optional<ElasticExchange> exchange_;
  GradientSum sum_;
  Memory base_;            // the values as last pulled
  Memory delta_;           // what is committed
  Memory carried_;         // differences that a fetch would have overwritten before their commit
  Memory velocity_;        // EAMSGD's velocity
  ValueSet own_, centre_;  // for kSharedExchange: a commit pulls the centre beside the worker's own values
  std::vector<MutableByteSpan> velocities_;
  bool carries_ = false;  // carried_ isn't empty
  bool new_ = true;       // a window must begin: values were pulled, or the last one ended (with an error, or for good)
  bool moves_ = false;    // an exchange was asked for and the worker's own values haven't moved yet
  bool ending_ = false;
  uint64_t generation_ = 0;    // generation of the values that the window began with
  uint32_t since_commit_ = 0;  // minibatches
  uint32_t since_fetch_ = 0;
  uint64_t staleness_ = 0;  // of the last commit
  int64_t dropped_ = 0;
};

}  // namespace muster
