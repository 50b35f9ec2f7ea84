#include "muster/algo/algorithms/local_variables.h"

#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "muster/algo/sources/traced_gradients.h"
#include "muster/base/status_macros.h"
#include "muster/optim/kernels/value_math.h"
#include "muster/store/client/value_set.h"

namespace muster {
namespace {

void Assign(ByteSpan from, MutableByteSpan to) {
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

}  // namespace

LocalVariablesAlgorithm::LocalVariablesAlgorithm(GradientSource& source, PlacementResult placement,
                                                 const OptimizerSpec& optimizer,
                                                 std::function<absl::StatusOr<double>()> run)
    : source_(source), binding_{source.variables(), std::move(placement), optimizer, {}}, run_(std::move(run)) {
  // The chief initialises the global variables with its local ones.
  for (size_t i = 0; i < binding_.variables.size(); ++i) binding_.values.push_back(source.value(i));
}

absl::Status LocalVariablesAlgorithm::CheckInRun(const char* what) const {
  if (client_ != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(what, " outside a run: call it from the function that is given to the session's Run"));
}

void LocalVariablesAlgorithm::Begin(StoreClient& client) {
  ValueSet pulled;
  global_.resize(binding_.variables.size());
  for (size_t i = 0; i < global_.size(); ++i) {
    global_[i].assign(binding_.values[i].begin(), binding_.values[i].end());
    pulled.values.emplace_back(global_[i]);
  }
  pulled.PullInto(client);
  assign_all_ = true;
}

absl::StatusOr<StepResult> LocalVariablesAlgorithm::Step(StoreClient& client) {
  has_pushed_ = false;
  client_ = &client;
  const absl::StatusOr<double> loss = run_();
  client_ = nullptr;
  // The session shows values after the run. Without this, a module on a GPU would lose what was trained but not pushed.
  const absl::Status taken = source_.TakeValues();
  if (!loss.ok()) {
    sums_.Clear();  // the session may repeat it from its beginning
    return loss.status();
  }
  RETURN_IF_ERROR(taken);
  if (has_pushed_) return StepResult{*loss, pushed_.global_step, pushed_.staleness};
  ASSIGN_OR_RETURN(const int64_t global_step, client.ReadGlobalStep());
  return StepResult{*loss, global_step, 0};
}

absl::Status LocalVariablesAlgorithm::PullGlobal() {
  RETURN_IF_ERROR(CheckInRun("PullGlobal"));
  RETURN_IF_ERROR(client_->Pull(PullWhat::kTrainable));
  return AssignGlobalToLocal();
}

absl::Status LocalVariablesAlgorithm::AssignGlobalToLocal() {
  RETURN_IF_ERROR(CheckInRun("AssignGlobalToLocal"));
  RETURN_IF_ERROR(source_.TakeValues());  // buffers stay as they are
  base_.resize(global_.size());
  for (size_t i = 0; i < global_.size(); ++i) {
    if (assign_all_ || trainable(i)) Assign(global_[i], source_.value(i));
    if (trainable(i)) base_[i] = global_[i];
  }
  assign_all_ = false;
  return source_.ShowValues();
}

absl::StatusOr<StorePushResult> LocalVariablesAlgorithm::Push(absl::FunctionRef<ByteSpan(size_t)> pushed,
                                                              uint32_t minibatches) {
  const bool chief = client_->chief_epoch() != 0;
  // The client publishes what it is bound to, so copy the chief's buffers there.
  for (size_t i = 0; chief && i < global_.size(); ++i)
    if (binding_.variables[i].kind == VariableKind::kBuffer) Assign(source_.value(i), global_[i]);
  ASSIGN_OR_RETURN(pushed_, client_->PushPull(pushed, {.publish_buffers = chief, .minibatches = minibatches}));
  has_pushed_ = true;
  return pushed_;
}

absl::StatusOr<StorePushResult> LocalVariablesAlgorithm::PushDelta(const LocalPushOptions& options) {
  RETURN_IF_ERROR(CheckInRun("PushDelta"));
  RETURN_IF_ERROR(source_.TakeValues());
  if (base_.empty())
    return absl::FailedPreconditionError(
        "PushDelta has nothing to take the difference from: assign the global variables to the local ones first "
        "(PullGlobal)");
  Memory deltas(global_.size());
  Memory locals(global_.size());  // a copy, so that what is pushed and the base of the next difference agree
  for (size_t i = 0; i < deltas.size(); ++i) {
    if (!trainable(i)) continue;
    const VariableSpec& variable = binding_.variables[i];
    if (const RuleSpec& rule = binding_.optimizer.RuleFor(variable.name); rule.kind != RuleKind::kAdd)
      return absl::FailedPreconditionError(
          absl::StrCat("PushDelta needs the rule add on the ps, but that of variable '", variable.name, "' is ",
                       RuleName(rule.kind), ": give LocalVariables the rule PlainAdd()"));
    const ByteSpan local = source_.value(i);
    locals[i].assign(local.begin(), local.end());
    deltas[i].resize(local.size());
    SetDifference(variable.dtype, deltas[i], locals[i], base_[i], options.scale);
  }
  const auto delta = [&deltas](size_t i) { return ByteSpan(deltas[i]); };
  ASSIGN_OR_RETURN(const StorePushResult pushed, Push(delta, options.minibatches));
  if (!pushed.dropped) base_ = std::move(locals);
  return pushed;
}

absl::Status LocalVariablesAlgorithm::AccumulateGradients() {
  RETURN_IF_ERROR(CheckInRun("AccumulateGradients"));
  sums_.Add(source_);
  return absl::OkStatus();
}

absl::StatusOr<StorePushResult> LocalVariablesAlgorithm::PushGradients(const LocalPushOptions& options) {
  RETURN_IF_ERROR(CheckInRun("PushGradients"));
  RETURN_IF_ERROR(source_.TakeValues());
  for (size_t i = 0; options.scale > 0 && i < global_.size(); ++i) {
    const std::string& name = binding_.variables[i].name;
    if (trainable(i) && binding_.optimizer.RuleFor(name).kind == RuleKind::kAdd)
      return absl::InvalidArgumentError(
          absl::StrCat("PushGradients with the scale ", options.scale, " and the rule add (of variable '", name,
                       "') would climb: give a negative scale, or a rule that subtracts, such as Sgd"));
  }
  if (sums_.minibatches() == 0) sums_.Add(source_);
  const absl::Cleanup pushed_or_lost = [this] { sums_.Clear(); };
  sums_.Scale(options.scale);
  const auto gradient = [this](size_t variable) { return sums_.sum(variable); };
  ASSIGN_OR_RETURN(const StorePushResult pushed, Push(gradient, options.minibatches));
  ShowGradients(*client_, gradient_tap(), {source_.variables(), gradient, {}});
  return pushed;
}

}  // namespace muster
