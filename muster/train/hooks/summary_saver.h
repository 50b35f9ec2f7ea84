// Writes summaries for TensorBoard, with the semantics of TensorFlow's SummarySaverHook. Used by one session's training
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/time/time.h"
#include "muster/train/hook_api/session_hook.h"

namespace muster {

// Writes the loss and all that the program registered in the step (docs/summaries.md): of the first run, then every
// `save_steps` or `save_interval` (exactly one). Tells TensorBoard from which step on older summaries are out of date,
// and flushes at the end.
struct SummarySaverOptions {
  std::optional<int64_t> save_steps;
  std::optional<absl::Duration> save_interval;
  // What is written instead, as an encoded `Summary`; called after a run whose summaries are due, when
  // StepSummaries::Current still knows that step. At most one: the scaffold's, or one for this hook.
  SummaryOp scaffold_summary;
  SummaryOp summary_op;
};
std::shared_ptr<SessionHook> SummarySaver(const SummarySaverOptions& options);

}  // namespace muster
