#include "muster/launch/experiment/grid_schedule.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"

namespace muster {

GridSchedule::GridSchedule(const std::vector<int>& runs, int concurrency, Start start)
    : runs_(runs.size()),
      concurrency_(static_cast<size_t>(concurrency)),
      start_(std::move(start)),
      waiting_(runs.begin(), runs.end()) {
  MUSTER_CHECK(concurrency >= 1);
}

void GridSchedule::Fill() {
  while (!waiting_.empty() && running_.size() < concurrency_) {
    const int run = waiting_.front();
    waiting_.pop_front();
    const std::optional<RunState> ended = start_(run);
    if (ended.has_value()) {
      Count(*ended);
    } else {
      running_.insert(run);
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
