// What the event file contains about a run, shared by its two writers: the SummarySaver hook and Supervisor. Used by
// the thread that runs the steps.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/summary/event_file_writer.h"
#include "muster/summary/step_summaries.h"
#include "muster/train/hook_api/session_hook.h"

namespace muster {

// Returns the loss and everything the program registered, as an encoded `Summary`. The program's own "loss" replaces
// the loss.
std::string SummaryOf(const RunValues& values);

// Hyperparameters and graph belong to the whole run: they are written once, with step 0, which is before every START,
// so that no restart drops them.
class WholeRunSummary {
 public:
  // Writes those of `summaries` that aren't written yet.
  [[nodiscard]] absl::Status Write(EventFileWriter& writer, const StepSummaries& summaries);
  // Records that the run has ended well, at `now`, in the row of its hyperparameters, if it has one.
  [[nodiscard]] absl::Status End(EventFileWriter& writer, absl::Time now) const;

 private:
  std::string hparams_;  // as written
  std::string graph_;    // as written
};

}  // namespace muster
