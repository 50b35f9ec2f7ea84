// Shows the gradients of this process in TensorBoard: one of the first things to look at when training doesn't learn.
// Both hooks look at the first run, then every so many global steps or so much time (exactly one), as SummarySaver
// does; between these they cost nothing. They see what algo/sources/gradient_tap.h shows: a worker's own gradients
// before any clipping, or in all-reduce the mean of all workers'. The tags are those of TensorFlow's optimize_loss
// (contrib/layers/python/layers/optimizers.py). On a task without summaries (a worker that isn't the chief) they do
// nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/time/time.h"
#include "muster/train/hook_api/session_hook.h"

namespace muster {

struct GradientSummaryOptions {
  std::optional<int64_t> save_steps;
  std::optional<absl::Duration> save_interval;
};

// Scalars: "global_norm/gradient_norm", the Euclidean norm of all gradients together, and "gradient_norm/VARIABLE" for
// each variable that has a gradient in the minibatch.
std::shared_ptr<SessionHook> GradientNorms(const GradientSummaryOptions& options);

// A histogram "gradients/VARIABLE" for each variable that has a gradient. Values that are NaN or infinite can't be in a
// histogram: the log says how many there are. A table of rows is shown by the rows that were looked up.
std::shared_ptr<SessionHook> GradientHistograms(const GradientSummaryOptions& options);

}  // namespace muster
