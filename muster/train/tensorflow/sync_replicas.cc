#include "muster/train/tensorflow/sync_replicas.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/wrong_configuration.h"

namespace muster {
namespace {

struct Tokens {
  int64_t given = -1;
  int64_t aggregate = 0;
  int64_t total = 0;
};

class SyncReplicasHook final : public SessionHook {
 public:
  SyncReplicasHook(std::shared_ptr<const bool> applied, bool is_chief, const Tokens& tokens)
      : applied_(std::move(applied)), is_chief_(is_chief), tokens_(tokens) {}

  absl::Status Begin() override {
    if (!*applied_)
      return absl::FailedPreconditionError(
          "SyncReplicasOptimizer.apply_gradient should be called before using the hook.");
    const int64_t needed = tokens_.aggregate - tokens_.total;
    if (is_chief_ && tokens_.given != -1 && tokens_.given < needed)
      return WrongOptionError(absl::StrCat("Too few tokens to finish the first step: ", tokens_.given, " (given) vs ",
                                           needed, " (needed)"));
    return absl::OkStatus();
  }
  absl::Status AfterCreateSession(const SessionContext& session) override {
    if (session.is_chief != is_chief_)
      return absl::FailedPreconditionError(absl::StrCat(
          "MakeSessionRunHook was told is_chief = ", is_chief_ ? "true" : "false", ", and the session says otherwise"));
    if (is_chief_)
      LogInfo("SyncReplicas: replicas_to_aggregate=", tokens_.aggregate, "; total_num_replicas=", tokens_.total);
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<const bool> applied_;
  const bool is_chief_;
  const Tokens tokens_;
};

}  // namespace

void WarnOfMissingReplicas(uint32_t total_num_replicas, size_t workers) {
  if (total_num_replicas > workers)
    LogWarning("total_num_replicas = ", total_num_replicas, ", but the cluster has ", workers,
               workers == 1 ? " worker" : " workers");
}

SyncReplicasOptimizer::SyncReplicasOptimizer(OptimizerSpec rule, uint32_t replicas_to_aggregate,
                                             std::optional<uint32_t> total_num_replicas)
    : rule_(std::move(rule)),
      options_{.replicas_to_aggregate = replicas_to_aggregate,
               .total_replicas = total_num_replicas.value_or(replicas_to_aggregate)} {}

std::unique_ptr<Algorithm> SyncReplicasOptimizer::Apply(GradientSource& source, PlacementResult placement) {
  *applied_ = true;
  return std::make_unique<SynchronousAlgorithm>(source, std::move(placement), rule_, options_);
}

std::shared_ptr<SessionHook> SyncReplicasOptimizer::MakeSessionRunHook(bool is_chief, int64_t num_tokens) const {
  return std::make_shared<SyncReplicasHook>(
      applied_, is_chief,
      Tokens{.given = num_tokens, .aggregate = options_.replicas_to_aggregate, .total = options_.total_replicas});
}

}  // namespace muster
