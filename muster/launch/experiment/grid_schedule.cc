#include "muster/launch/experiment/grid_schedule.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"

namespace muster {

GridSchedule::GridSchedule(const std::vector<int>& runs, int finished, int concurrency, Start start)
    : runs_(runs.size() + static_cast<size_t>(finished)),
      concurrency_(static_cast<size_t>(concurrency)),
      start_(std::move(start)),
      waiting_(runs.begin(), runs.end()),
      finished_(static_cast<size_t>(finished)) {
  MUSTER_CHECK(concurrency >= 1);
}

void GridSchedule::Fill() {
  while (!waiting_.empty() && running_.size() < concurrency_) {
    const int run = waiting_.front();
    waiting_.pop_front();
    const RunState state = start_(run);
    if (HasEnded(state)) {
      Count(state);
    } else if (state == RunState::kRunning) {
      running_.insert(run);
    } else {
      return waiting_.push_front(run);
    }
  }
}

void GridSchedule::OnEnd(int run, RunState state) {
  if (running_.erase(run) > 0) Count(state);
}

void GridSchedule::Count(RunState end) {
  if (end == RunState::kFinished) {
    ++finished_;
  } else {
    ++(end == RunState::kKilled ? killed_ : failed_);
  }
}

std::vector<int> GridSchedule::Stop() {
  stopped_ = true;
  const std::vector<int> never(waiting_.begin(), waiting_.end());
  killed_ += never.size();
  waiting_.clear();
  return never;
}

RunState GridSchedule::state() const {
  if (finished_ == runs_) return RunState::kFinished;
  return stopped_ ? RunState::kKilled : RunState::kFailed;
}

std::string GridSchedule::reason() const {
  if (finished_ == runs_) return "";
  std::string reason;
  if (failed_ > 0) absl::StrAppend(&reason, failed_, " of ", runs_, " runs failed");
  if (killed_ > 0)
    absl::StrAppend(&reason, reason.empty() ? "" : ", ", killed_, " of ", runs_, killed_ == 1 ? " was" : " were",
                    " killed");
  return reason;
}

}  // namespace muster
