// What the gradients of this process look like, for TensorBoard: one of the first things to look at when training
// doesn't learn. Both look at the first run, then every so many global steps or so much time (exactly one), as
// SummarySaver does; between these they cost nothing. They look at what algo/gradient_tap.h shows: a worker's own
// gradients before any clipping, or the mean of all workers' in all-reduce. Tags are those of TensorFlow's
// optimize_loss (contrib/layers/python/layers/optimizers.py). On a task without summaries (a worker that isn't the
// chief) they do nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/time/time.h"
#include "muster/train/hook/session_hook.h"

namespace muster {

struct GradientSummaryOptions {
  std::optional<int64_t> save_steps;
  std::optional<absl::Duration> save_interval;
};

// Scalars: "global_norm/gradient_norm", the Euclidean norm of all gradients together, and "gradient_norm/VARIABLE" of
// each variable that had a part in the minibatch.
std::shared_ptr<SessionHook> GradientNorms(const GradientSummaryOptions& options);

// A histogram "gradients/VARIABLE" of each variable that had a part. Values that are no finite numbers can't be in one:
// how many there are is said in the log. Of a table of rows: the rows that were looked up.
std::shared_ptr<SessionHook> GradientHistograms(const GradientSummaryOptions& options);

}  // namespace muster
