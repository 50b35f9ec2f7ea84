#include "muster/launch/jobs/job_ending.h"

namespace muster {

std::optional<std::string> EndingOf(JobEngine& engine, const std::string& id,
                                    const std::function<void(absl::Duration)>& pause) {
  for (absl::Duration waited;; waited += kNewsPause, pause(kNewsPause)) {
    const auto news = engine.Look({id});
    if (!news.ok()) return std::nullopt;
    const JobNews& own = news->at(id);
    if (own.time_over) return std::nullopt;
    if (own.cancelled) return "";
    if (own.phase == JobPhase::kEnded) return own.reason.empty() ? own.text : own.reason;
    if (own.ending) return own.reason;
    if (waited >= kNewsPatience) return std::nullopt;
  }
}

}  // namespace muster
