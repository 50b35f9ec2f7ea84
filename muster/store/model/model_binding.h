// The model as one process has it, for its StoreClient: what it consists of, where it is placed, the memory of each
// variable, and how this worker's pushes are to be taken. A plain value.
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
  std::vector<MutableByteSpan> values;  // one a variable, empty for tables of rows; must outlive the client
  GateSpec gate = {};
  uint64_t clock_limit = 0;  // see StoreModel
  bool exchanges = false;    // likewise
  bool ordered = false;      // likewise
  bool through_ps = false;   // this worker doesn't apply its updates itself
  // Of this worker's updates; the ps alone apply them then. The first two are for pushes with `computed_from`, one of
  // them at most.
  double compensation = 0;  // λ of DelayCompensation; 0: none
  double adaptive = 0;      // γ of AdaptiveDelta; 0: none
  StalenessScale staleness_scale = StalenessScale::kNone;
};

}  // namespace muster
