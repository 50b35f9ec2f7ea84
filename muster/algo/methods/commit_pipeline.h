// The pipeline that every algorithm with a ps is a setting of (commit_spec.h; docs/algorithms.md): a worker computes
// minibatches, moves its own values by a rule of its own, and every `window` minibatches commits what has come of it
// and pulls. What is committed is applied exactly once (store/store_client.h).
//
// Within a window nothing is sent, but for rows of tables: Step gives back the global step and the staleness of the
// last commit.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "muster/algo/methods/algorithm.h"
#include "muster/algo/methods/commit_spec.h"
#include "muster/algo/sources/gradient_sum.h"
#include "muster/algo/sources/local_rule.h"
#include "muster/algo/sources/table_rows.h"
#include "muster/store/client/elastic_exchange.h"
#include "muster/store/client/value_set.h"

namespace muster {

class CommitPipeline final : public Algorithm {
 public:
  // `source` must outlive it. `spec` makes sense with `server_rule` (PlanAlgorithm makes none that doesn't).
  CommitPipeline(GradientSource& source, PlacementResult placement, const OptimizerSpec& server_rule,
                 const CommitSpec& spec);

  GradientSource& source() override { return source_; }
  const ModelBinding& binding() const override { return binding_; }
  uint32_t window() const override { return spec_.window; }
  // A new window begins, with the values that the session pulls then. The worker's slots stay.
  void Begin(StoreClient& client) override;
  // Blocks as the gate does, when it commits.
  absl::StatusOr<StepResult> Step(StoreClient& client) override;
  void End() override { ending_ = true; }
  // After End: commits what the last window has, and the source's values are the global ones. Before it, nothing: the
  // window goes on.
  [[nodiscard]] absl::Status Settle(StoreClient& client) override;

  // Commits of this worker that weren't taken: too late for their round, or not finite.
  int64_t dropped() const { return dropped_; }

 private:
  using Memory = std::vector<std::vector<std::byte>>;  // one a variable; empty for what isn't trainable

  bool trainable(size_t i) const { return binding_.variables[i].kind == VariableKind::kTrainable; }
  bool exchanges() const { return spec_.kind == CommitKind::kExchange || spec_.kind == CommitKind::kSharedExchange; }
  // Commits differences, to values that have to be remembered therefore.
  bool has_delta() const { return spec_.kind == CommitKind::kDelta || spec_.kind == CommitKind::kPseudoGradient; }
  bool needs_base() const { return has_delta() || spec_.kind == CommitKind::kSharedExchange || spec_.compensation > 0; }
  // Fetches go by a count of their own.
  bool fetches_apart() const { return spec_.fetch_window != 0 && spec_.fetch_window != spec_.window; }

  Memory MakeMemory() const;
  void StartWindow();
  void TakeBase();
  absl::StatusOr<double> ComputeGradients(StoreClient& client);
  [[nodiscard]] absl::Status MoveOwnValues(StoreClient& client);
  [[nodiscard]] absl::Status CommitOrFetch(StoreClient& client);
  [[nodiscard]] absl::Status Commit(StoreClient& client, bool pulls);
  [[nodiscard]] absl::Status Fetch(StoreClient& client);
  // Asks for it; the worker's own values move with MoveByExchange, or not at all if it was dropped.
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
  Memory base_;            // as they were pulled last
  Memory delta_;           // what is committed
  Memory carried_;         // of differences that a fetch came before
  Memory velocity_;        // of EAMSGD
  ValueSet own_, centre_;  // of kSharedExchange: its commits pull the centre beside the worker's own values
  std::vector<MutableByteSpan> velocities_;
  bool carries_ = false;  // there is something in carried_
  bool new_ = true;       // no window has begun since the values were pulled, or it is over by an error or the end
  bool moves_ = false;    // an exchange was asked for, and own values haven't moved yet
  bool ending_ = false;
  uint64_t generation_ = 0;    // of the values that the window began with
  uint32_t since_commit_ = 0;  // minibatches
  uint32_t since_fetch_ = 0;
  uint64_t staleness_ = 0;  // of the last commit
  int64_t dropped_ = 0;
};

}  // namespace muster
