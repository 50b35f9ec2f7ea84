// The model as one process has it, for its StoreClient: its variables, where they are placed, the memory of each, and
// how this worker's pushes are applied. A plain value.
#pragma once

#include <cstdint>
#include <vector>

#include "muster/base/bytes.h"
#include "muster/cluster/placement/placement.h"
#include "muster/cluster/placement/variable_spec.h"
#include "muster/optim/optimizer_spec.h"
#include "muster/optim/staleness_scale.h"
#include "muster/store/model/model.h"

namespace muster {

struct ModelBinding {
  std::vector<VariableSpec> variables;
  PlacementResult placement;
  OptimizerSpec optimizer;
  std::vector<MutableByteSpan> values;  // one per variable, empty for tables of rows; must outlive the client
  GateSpec gate = {};
  uint64_t clock_limit = 0;  // see StoreModel
  bool exchanges = false;    // likewise
  bool ordered = false;      // likewise
  bool through_ps = false;   // this worker doesn't apply its updates itself
  // For this worker's updates, which only the ps apply then. The first two are for pushes with `computed_from`; at most
  // one of them may be set.
  double compensation = 0;  // c of DelayCompensation; 0: none
  double adaptive = 0;      // γ of AdaptiveDelta; 0: none
  StalenessScale staleness_scale = StalenessScale::kNone;
};

}  // namespace muster
