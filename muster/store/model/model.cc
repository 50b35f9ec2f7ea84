#include "muster/store/model/model.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/status_macros.h"
#include "muster/optim/sparse_rows.h"

namespace muster {
namespace {

// More than any machine's memory; keeps every product below far from the limits of int64.
constexpr int64_t kMaxElements = int64_t{1} << 44;

absl::StatusOr<int64_t> CheckedElements(const std::string& name, const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (int64_t extent : shape) {
    if (extent < 0 || (extent > 0 && elements > kMaxElements / extent))
      return absl::InvalidArgumentError(
          absl::StrCat("variable '", name, "' has an impossible shape [", absl::StrJoin(shape, ","), "]"));
    elements *= extent;
  }
  return elements;
}

// Types that an update rule works on and a message may carry: a number that is no DType must not reach DTypeSize.
bool KnownType(DType dtype) { return dtype >= DType::kFloat32 && dtype <= DType::kBool; }
bool KnownKind(VariableKind kind) { return kind >= VariableKind::kTrainable && kind <= VariableKind::kRows; }

absl::Status CheckTable(const VariableSpec& variable, const RuleSpec& rule) {
  const auto refuse = [&variable](const auto&... pieces) {
    return absl::InvalidArgumentError(
        absl::StrCat("variable '", variable.name, "' is a table of rows, but ", pieces...));
  };
  const RowInitializer& initial = variable.table.initial;
  // Without rows, the shape as a whole doesn't tell how long one would be.
  if (!variable.shape.empty())
    RETURN_IF_ERROR(CheckedElements(variable.name, {variable.shape.begin() + 1, variable.shape.end()}).status());
  if (variable.shape.empty() || variable.row_elements() < 1)
    return refuse("its rows have no elements; accepted: a shape [rows, ...]");
  if (!IsFloatingPoint(variable.dtype))
    return refuse("of type ", DTypeName(variable.dtype), "; accepted: float32, float64, float16, bfloat16");
  if (variable.table.partition > RowPartition::kDiv || initial.kind > RowInitializer::Kind::kNormal ||
      !std::isfinite(initial.center) || !std::isfinite(initial.spread))
    return refuse("its partition or initializer is none; accepted: mod, div; zeros, uniform, normal of finite numbers");
  if (!SupportsRows(rule.kind))
    return refuse("rule ", RuleName(rule.kind), " can't update single rows; accepted: ", RulesForRows());
  if (rule.clip.kind == ClipKind::kGlobalNorm)
    return refuse(
        "its rule clips by the global norm, which is known only when all gradients are there; accepted: "
        "clipping by value or by the variable's norm");
  return absl::OkStatus();
}

// Whether the table's partition makes such a slice. The limit keeps offsets far from those of int64.
constexpr int kMaxShards = 10'000;
bool IsShardOfTable(const VariableSpec& variable, const PlacedSlice& slice) {
  if (slice.num_shards < 1 || slice.num_shards > kMaxShards || slice.shard < 0 || slice.shard >= slice.num_shards)
    return false;
  const RowSplit split(variable.table.partition, variable.shape[0], slice.num_shards);
  std::vector<int64_t> shape = variable.shape;
  shape[0] = split.RowsOf(slice.shard);
  return slice.shape == shape && slice.row_step == split.Step() &&
         slice.offset == split.FirstRowOf(slice.shard) * variable.row_elements();
}

absl::Status CheckVariable(const VariableSpec& variable, const OptimizerSpec& optimizer) {
  if (!KnownType(variable.dtype) || !KnownKind(variable.kind))
    return absl::InvalidArgumentError(
        absl::StrCat("variable '", variable.name, "' is of an unknown type or kind (", static_cast<int>(variable.dtype),
                     ", ", static_cast<int>(variable.kind), "); every task must run the same version"));
  if (variable.updated()) {
    const absl::Status updatable = CheckRuleFor(optimizer.RuleFor(variable.name), variable.dtype);
    if (!updatable.ok())
      return absl::InvalidArgumentError(
          absl::StrCat("variable '", variable.name, "' is trainable, but ", updatable.message()));
  }
  RETURN_IF_ERROR(CheckedElements(variable.name, variable.shape).status());
  return variable.kind == VariableKind::kRows ? CheckTable(variable, optimizer.RuleFor(variable.name))
                                              : absl::OkStatus();
}

absl::Status CheckSlice(const StoreModel& model, const PlacedSlice& slice) {
  if (slice.variable < 0 || slice.variable >= static_cast<int>(model.variables.size()))
    return absl::InvalidArgumentError(
        absl::StrCat("a slice names variable ", slice.variable, " of ", model.variables.size()));
  const VariableSpec& variable = model.variable(slice);
  const auto elements = CheckedElements(variable.name, slice.shape);
  RETURN_IF_ERROR(elements.status());
  const bool table = variable.kind == VariableKind::kRows;
  const bool sound = *elements == slice.elements &&
                     slice.bytes == *elements * static_cast<int64_t>(DTypeSize(variable.dtype)) && slice.offset >= 0 &&
                     (table ? IsShardOfTable(variable, slice)
                            : slice.row_step == 1 && slice.offset <= variable.elements() - *elements);
  if (sound) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("slice ", slice.shard, " of variable '", variable.name, "' doesn't lie within it"));
}

absl::Status CheckGates(const StoreModel& model) {
  const GateSpec& gate = model.gate;
  if (gate.kind == GateKind::kNone) return absl::OkStatus();
  if (gate.kind != GateKind::kSynchronous)
    return absl::InvalidArgumentError(absl::StrCat("unknown kind of gate ", static_cast<int>(gate.kind)));
  if (gate.replicas_to_aggregate == 0)
    return absl::InvalidArgumentError(
        "replicas_to_aggregate is 0; an update needs the gradients of at least 1 replica");
  if (gate.replicas_to_aggregate > gate.total_replicas && !gate.elastic)
    return absl::InvalidArgumentError(absl::StrCat("replicas_to_aggregate is ", gate.replicas_to_aggregate,
                                                   ", but there are only ", gate.total_replicas,
                                                   " replicas: no update would ever be complete; use at most as many"));
  if (model.clock_limit > 0)
    return absl::InvalidArgumentError(
        "a synchronous gate keeps workers in step: use it or a staleness bound, not both");
  for (const VariableSpec& variable : model.variables) {
    if (variable.kind == VariableKind::kRows)
      return absl::InvalidArgumentError(
          absl::StrCat("variable '", variable.name,
                       "' is a table of rows, which a synchronous gate can't average; train it asynchronously"));
    if (variable.kind == VariableKind::kTrainable && !IsFloatingPoint(variable.dtype))
      return absl::InvalidArgumentError(absl::StrCat("variable '", variable.name, "' is of type ",
                                                     DTypeName(variable.dtype),
                                                     "; a synchronous gate takes means, of floating-point types"));
  }
  return absl::OkStatus();
}

std::string DescribeGate(const StoreModel& model) {
  std::string text = "no gate";
  if (model.gated())
    text = absl::StrCat(model.gate.replicas_to_aggregate, " of ", model.gate.total_replicas, " replicas",
                        model.gate.elastic ? ", elastic" : "");
  if (model.exchanges) absl::StrAppend(&text, ", elastic exchange");
  if (model.clock_limit > 0) absl::StrAppend(&text, ", a staleness bound of ", model.clock_limit - 1);
  if (model.ordered) absl::StrAppend(&text, ", in the workers' order");
  return text;
}

absl::Status CheckOrder(const StoreModel& model) {
  if (!model.ordered) return absl::OkStatus();
  if (model.clock_limit == 1)
    return absl::InvalidArgumentError(
        "a staleness bound of 0 keeps each worker waiting for the next one, which in the workers' order waits for its "
        "turn; use a synchronous gate, or a bound of 1 or more");
  if (model.gated() && (model.gate.elastic || model.gate.replicas_to_aggregate != model.gate.total_replicas))
    return absl::InvalidArgumentError(absl::StrCat(
        "in the workers' order each worker has its place in every round, but the gate takes ",
        model.gate.replicas_to_aggregate, " of ", model.gate.total_replicas, model.gate.elastic ? " (elastic)" : "",
        "; use as many replicas as there are workers, without backup workers"));
  for (const VariableSpec& variable : model.variables)
    if (variable.kind == VariableKind::kRows)
      return absl::InvalidArgumentError(
          absl::StrCat("variable '", variable.name,
                       "' is a table of rows, which are looked up and pushed whenever a minibatch needs them, in "
                       "nobody's turn; train it without the workers' order (without --deterministic)"));
  return absl::OkStatus();
}

bool SameSlice(const PlacedSlice& a, const PlacedSlice& b) {
  return a.variable == b.variable && a.shard == b.shard && a.num_shards == b.num_shards && a.offset == b.offset &&
         a.shape == b.shape && a.row_step == b.row_step;
}

absl::Status CheckExchanges(const StoreModel& model) {
  if (!model.exchanges) return absl::OkStatus();
  if (model.gated()) return absl::InvalidArgumentError("a model has elastic exchanges or a synchronous gate, not both");
  if (model.clock_limit > 0)
    return absl::InvalidArgumentError("a model has elastic exchanges or a staleness bound, not both");
  for (const VariableSpec& variable : model.variables) {
    if (variable.kind != VariableKind::kTrainable) continue;
    const RuleSpec& rule = model.optimizer.RuleFor(variable.name);
    const bool fits = variable.dtype == DType::kFloat32 || variable.dtype == DType::kFloat64;
    if (!fits || rule.kind != RuleKind::kAdd || rule.clip.kind != ClipKind::kNone)
      return absl::InvalidArgumentError(
          absl::StrCat("variable '", variable.name, "' is of type ", DTypeName(variable.dtype), " with rule ",
                       RuleName(rule.kind), "; elastic exchanges take float32 and float64 with rule add, not clipped"));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<SlotSpec> StoreModel::slots(const PlacedSlice& slice) const {
  if (!variable(slice).updated()) return {};
  const auto update = MakeUpdateRule(rule(slice));
  return update.ok() ? (*update)->slots() : std::vector<SlotSpec>();
}

StoreModel ModelOfPs(const std::vector<VariableSpec>& variables, const PlacementResult& placement,
                     const OptimizerSpec& optimizer, int ps) {
  StoreModel model{variables, {}, optimizer};
  for (const PlacedSlice& slice : placement.slices)
    if (slice.ps == ps) model.slices.push_back(slice);
  return model;
}

std::string DescribeType(const VariableSpec& variable) {
  return absl::StrCat(DTypeName(variable.dtype), "[", absl::StrJoin(variable.shape, ","), "]");
}

absl::Status CompareModels(const StoreModel& chiefs, const StoreModel& theirs, const std::string& who) {
  const size_t common = std::min(chiefs.variables.size(), theirs.variables.size());
  for (size_t i = 0; i < common; ++i) {
    const VariableSpec& a = chiefs.variables[i];
    const VariableSpec& b = theirs.variables[i];
    if (a.name == b.name && a.dtype == b.dtype && a.shape == b.shape && a.kind == b.kind && a.table == b.table)
      continue;
    return absl::FailedPreconditionError(
        absl::StrCat("the model of ", who, " differs from the chief's at variable ", i, ": ", who, " has '", b.name,
                     "' ", DescribeType(b), ", the chief has '", a.name, "' ", DescribeType(a),
                     a.kind != b.kind     ? " (and only one of them is trainable)"
                     : a.table != b.table ? " (and they partition or initialise its rows in different ways)"
                                          : "",
                     "; start the same program on every task"));
  }
  if (chiefs.variables.size() != theirs.variables.size()) {
    const bool more = theirs.variables.size() > common;
    const VariableSpec& extra = more ? theirs.variables[common] : chiefs.variables[common];
    return absl::FailedPreconditionError(absl::StrCat(
        "the model of ", who, " has ", theirs.variables.size(), " variables, the chief's has ", chiefs.variables.size(),
        ": '", extra.name, "' ", DescribeType(extra), " is only in the ", more ? "former" : "latter"));
  }
  const RuleSpec& a = chiefs.optimizer.rule;
  const RuleSpec& b = theirs.optimizer.rule;
  if (!(chiefs.optimizer == theirs.optimizer))
    return absl::FailedPreconditionError(
        absl::StrCat(who, " asks for the update rule ", RuleName(b.kind), " (learning_rate ", b.learning_rate,
                     "), the chief for ", RuleName(a.kind), " (learning_rate ", a.learning_rate,
                     ") or other hyperparameters or groups; use the same on every task"));
  if (chiefs.gate != theirs.gate || chiefs.clock_limit != theirs.clock_limit || chiefs.exchanges != theirs.exchanges ||
      chiefs.ordered != theirs.ordered)
    return absl::FailedPreconditionError(absl::StrCat(who, " trains with ", DescribeGate(theirs), ", the chief with ",
                                                      DescribeGate(chiefs), "; use the same on every task"));
  if (!std::equal(chiefs.slices.begin(), chiefs.slices.end(), theirs.slices.begin(), theirs.slices.end(), SameSlice))
    return absl::FailedPreconditionError(
        absl::StrCat(who, " places or partitions the variables in another way than the chief; use the same strategy"));
  return absl::OkStatus();
}

absl::Status ValidateModel(const StoreModel& model) {
  std::vector<std::string> names;
  for (const VariableSpec& variable : model.variables) names.push_back(variable.name);
  RETURN_IF_ERROR(CheckOptimizer(model.optimizer, names));
  for (const VariableSpec& variable : model.variables) RETURN_IF_ERROR(CheckVariable(variable, model.optimizer));
  RETURN_IF_ERROR(CheckGates(model));
  RETURN_IF_ERROR(CheckExchanges(model));
  RETURN_IF_ERROR(CheckOrder(model));
  int64_t total = 0;
  for (const PlacedSlice& slice : model.slices) {
    RETURN_IF_ERROR(CheckSlice(model, slice));
    total += slice.elements;
    if (total > kMaxElements)
      return absl::InvalidArgumentError(absl::StrCat("the slices have more than ", kMaxElements, " elements together"));
  }
  return absl::OkStatus();
}

}  // namespace muster
