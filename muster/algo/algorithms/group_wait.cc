#include "muster/algo/algorithms/group_wait.h"

#include "muster/base/log.h"

namespace muster {
namespace {

// Usually longer than a checkpoint or a slow minibatch makes the others wait.
constexpr absl::Duration kBeforeLog = absl::Seconds(10);

}  // namespace

void GroupWait::operator()(const std::string& whom, absl::Duration waited, const absl::Status& ended) {
  if (whom != shown_ && track_ != nullptr) track_->SetWaitingFor(whom);
  shown_ = whom;
  if (whom.empty()) {
    // If the worker hasn't come, the operation's error says more.
    if (!logged_.empty() && ended.ok()) LogInfo("the wait for ", logged_, " is over");
    logged_.clear();
    return;
  }
  if (logged_.empty()) {
    next_log_ = kBeforeLog;
    pause_.Reset();
  }
  if (waited < next_log_) return;
  LogWarning(whom, " hasn't come to the step of the others for ",
             absl::FormatDuration(absl::Trunc(waited, absl::Seconds(1))), "; it is waited for up to ",
             absl::FormatDuration(patience_), " (AllReduceOptions::patience)");
  logged_ = whom;
  next_log_ = waited + pause_.Next();
}

}  // namespace muster
