// Which tasks a run can do without. Pure, thread-safe.
#pragma once

#include "muster/cluster/task_id.h"

namespace muster {

// Returns whether nobody in the job waits for what the task does: training has the same result without it. TensorFlow's
// evaluator isn't in the cluster, either; one that can't be placed must not hold up the others (tensorflow#46169).
inline bool IsDispensable(const TaskId& task) { return task.job == kEvaluatorJob; }

}  // namespace muster
