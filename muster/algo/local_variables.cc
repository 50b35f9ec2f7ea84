#include "muster/algo/local_variables.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/algo/traced_gradients.h"
#include "muster/base/status_macros.h"
#include "muster/optim/add_gradient.h"
#include "muster/optim/half.h"
#include "muster/optim/update_rule.h"
#include "muster/store/value_set.h"

namespace muster {
namespace {

// Zeros to sum gradients of the variable up in.
std::vector<std::byte> ZeroSum(const VariableSpec& variable) {
  return std::vector<std::byte>(variable.elements() * DTypeSize(SlotDType(variable.dtype)));
}

// A sum as the variable's own type: in its own memory, but for halves, whose sums are floats.
void Narrow(DType dtype, std::vector<std::byte>& sum) {
  if (SlotDType(dtype) == dtype) return;
  std::vector<std::byte> narrow(sum.size() / sizeof(float) * kHalfBytes);
  HalvesFromFloats(dtype, reinterpret_cast<const float*>(sum.data()), narrow.data(), sum.size() / sizeof(float));
  sum = std::move(narrow);
}

template <typename T>
void ScaleElements(std::vector<std::byte>& sum, double scale) {
  T* const elements = reinterpret_cast<T*>(sum.data());
  for (size_t i = 0; i < sum.size() / sizeof(T); ++i) elements[i] *= static_cast<T>(scale);
}

void Scale(DType dtype, std::vector<std::byte>& sum, double scale) {
  if (scale == 1) return;
  SlotDType(dtype) == DType::kFloat64 ? ScaleElements<double>(sum, scale) : ScaleElements<float>(sum, scale);
}

void Assign(ByteSpan from, MutableByteSpan to) {
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

}  // namespace

LocalVariablesAlgorithm::LocalVariablesAlgorithm(GradientSource& source, PlacementResult placement,
                                                 const OptimizerSpec& optimizer,
                                                 std::function<absl::StatusOr<double>()> run)
    : source_(source), binding_{source.variables(), std::move(placement), optimizer, {}}, run_(std::move(run)) {
  // The chief initialises the global ones with its local ones.
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
  // The session shows values when the run is over: of a module on a GPU, what was trained but not pushed would be lost.
  const absl::Status taken = source_.TakeValues();
  if (!loss.ok()) {
    sums_.clear();  // the session may run it again, from its beginning
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

absl::StatusOr<StorePushResult> LocalVariablesAlgorithm::Push(Memory& sums, const LocalPushOptions& options) {
  const bool chief = client_->chief_epoch() != 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    const VariableSpec& variable = binding_.variables[i];
    // The client publishes what it is bound to.
    if (chief && variable.kind == VariableKind::kBuffer) Assign(source_.value(i), global_[i]);
    if (sums[i].empty()) continue;
    Scale(variable.dtype, sums[i], options.scale);
    Narrow(variable.dtype, sums[i]);
  }
  ASSIGN_OR_RETURN(pushed_, client_->PushPull([&](size_t i) { return ByteSpan(sums[i]); },
                                              {.publish_buffers = chief, .minibatches = options.minibatches}));
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
  Memory locals(global_.size());  // as they are now: what is pushed and what the next difference begins from agree
  for (size_t i = 0; i < deltas.size(); ++i) {
    if (!trainable(i)) continue;
    const VariableSpec& variable = binding_.variables[i];
    if (const RuleSpec& rule = binding_.optimizer.RuleFor(variable.name); rule.kind != RuleKind::kAdd)
      return absl::FailedPreconditionError(
          absl::StrCat("PushDelta needs the rule add on the ps, but that of variable '", variable.name, "' is ",
                       RuleName(rule.kind), ": give LocalVariables the rule PlainAdd()"));
    const ByteSpan local = source_.value(i);
    locals[i].assign(local.begin(), local.end());
    deltas[i] = ZeroSum(variable);
    AddGradient(variable.dtype, deltas[i], locals[i]);
    AddGradient(variable.dtype, deltas[i], base_[i], -1);
  }
  ASSIGN_OR_RETURN(const StorePushResult pushed, Push(deltas, options));
  if (!pushed.dropped) base_ = std::move(locals);
  return pushed;
}

absl::Status LocalVariablesAlgorithm::AccumulateGradients() {
  RETURN_IF_ERROR(CheckInRun("AccumulateGradients"));
  sums_.resize(global_.size());
  for (size_t i = 0; i < sums_.size(); ++i) {
    const ByteSpan gradient = source_.gradient(i);
    if (gradient.empty()) continue;
    if (sums_[i].empty()) sums_[i] = ZeroSum(binding_.variables[i]);
    AddGradient(binding_.variables[i].dtype, sums_[i], gradient);
  }
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
  if (sums_.empty()) RETURN_IF_ERROR(AccumulateGradients());
  Memory sums = std::exchange(sums_, {});
  ASSIGN_OR_RETURN(const StorePushResult pushed, Push(sums, options));
  const auto gradient = [&sums](size_t variable) { return ByteSpan(sums[variable]); };
  ShowGradients(*client_, gradient_tap(), {source_.variables(), gradient, {}});
  return pushed;
}

}  // namespace muster
