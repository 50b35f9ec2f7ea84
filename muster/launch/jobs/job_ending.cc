#include "muster/launch/jobs/job_ending.h"

namespace muster {

using What = EndingOfJob::What;

EndingOfJob EndingOf(JobEngine& engine, const OwnJob& own, const Clock& clock,
                     const std::function<void(absl::Duration)>& pause) {
  for (const absl::Time until = clock.Now() + kNewsPatience;; pause(kNewsPause)) {
    const auto all = engine.Look({own.id});
    if (!all.ok()) return {.what = What::kUnknown};
    const JobNews& news = all->at(own.id);
    const bool ends = news.phase != JobPhase::kRuns || news.ending;
    // In most engines' words it looks like any other end.
    if (ends && engine.Restarts(own.id).value_or(0) > own.restarts) return {.what = What::kBegunAnew};
    if (news.time_over) return {};
    const bool says_why = news.ending && !news.reason.empty();
    if (news.cancelled) return {.what = What::kCancelled, .reason = says_why ? ": " + news.reason : ""};
    if (news.phase == JobPhase::kEnded)
      return {.what = What::kEnded, .reason = news.reason.empty() ? news.text : news.reason};
    if (news.ending) return {.what = news.reason.empty() ? What::kCancelled : What::kEnded, .reason = news.reason};
    if (clock.Now() >= until) return {};
  }
}

}  // namespace muster
