// The model as the store knows it: every variable (so that processes can be compared) and the slices of one ps. A plain
// value; no thread safety needed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "muster/cluster/placement/placement.h"
#include "muster/cluster/placement/variable_spec.h"
#include "muster/optim/optimizer_spec.h"
#include "muster/optim/update_rule.h"

namespace muster {

// The numbers are written to the wire: never renumber.
enum class GateKind : uint8_t { kNone = 0, kSynchronous = 1 };

// Which workers wait for which: see docs/store/gates.md. (TensorFlow's SyncReplicasOptimizer.)
struct GateSpec {
  GateKind kind = GateKind::kNone;
  uint32_t replicas_to_aggregate = 0;  // N: gradients that make an update
  uint32_t total_replicas = 0;         // M: workers; those beyond N are backups
  bool elastic = false;                // N shrinks to the number of present workers

  bool operator==(const GateSpec&) const = default;
};

struct StoreModel {
  std::vector<VariableSpec> variables;  // the whole model, in order of creation
  std::vector<PlacedSlice> slices;      // what this ps holds, in order of the variables
  OptimizerSpec optimizer;
  GateSpec gate;
  bool exchanges = false;    // workers exchange with the model elastically; all rules are add
  uint64_t clock_limit = 0;  // 1 + how many clocks a worker may be ahead of the slowest; 0: as many as it likes
  // The workers' pushes are taken in turn, in the order of the client rows; an absent worker is waited for.
  bool ordered = false;

  bool gated() const { return gate.kind == GateKind::kSynchronous; }
  // Pushes are held back, answered with what they moved, or taken in turn: no worker can apply them itself.
  bool applied_by_ps_alone() const { return clock_limit > 0 || exchanges || ordered; }
  const VariableSpec& variable(const PlacedSlice& slice) const { return variables[slice.variable]; }
  const VariableSpec& variable_of(size_t slice) const { return variable(slices[slice]); }
  // The rule that updates the slice. Only for slices that are updated.
  const RuleSpec& rule(const PlacedSlice& slice) const { return optimizer.RuleFor(variable(slice).name); }
  // The names, in order, of the state that its rule keeps beside the slice.
  std::vector<SlotSpec> slots(const PlacedSlice& slice) const;
};

// Returns the part of `placement` that `ps` holds.
StoreModel ModelOfPs(const std::vector<VariableSpec>& variables, const PlacementResult& placement,
                     const OptimizerSpec& optimizer, int ps);

// "float32[784,100]"
std::string DescribeType(const VariableSpec& variable);

// FailedPrecondition names the first variable (or slice, or rule) in which `theirs` (of task `who`) differs from the
// chief's model, with both shapes.
[[nodiscard]] absl::Status CompareModels(const StoreModel& chiefs, const StoreModel& theirs, const std::string& who);

// InvalidArgument if slices point outside their variables or are larger together than any machine, if a type is unknown
// or one that a rule can't update, or if the rule or the gate makes no sense: what comes from the wire is checked
// before anything is allocated for it.
[[nodiscard]] absl::Status ValidateModel(const StoreModel& model);

}  // namespace muster
