#include "muster/launch/supervise/place_search.h"

#include <algorithm>

namespace muster {
namespace {

constexpr absl::Duration kFirstSearchPause = absl::Milliseconds(250);
constexpr absl::Duration kLongestSearchPause = absl::Seconds(10);
constexpr int kMostDoublings = 10;
constexpr int kTriesPerNews = 10;

}  // namespace

std::optional<PlaceSearch::NextTry> PlaceSearch::Next(const TaskId& task, absl::Time now) {
  Search& search = searches_.try_emplace(task, Search{.since = now}).first->second;
  const absl::Duration left = search.since + kPatience - now;
  if (left <= absl::ZeroDuration()) return std::nullopt;
  const int tries = search.tries++;
  const absl::Duration pause =
      std::min(kLongestSearchPause, kFirstSearchPause * (1 << std::min(tries, kMostDoublings)));
  return NextTry{.when = now + pause, .left = left, .is_news = tries % kTriesPerNews == 0};
}

bool PlaceSearch::HasAny(const std::string& job) const {
  return std::any_of(searches_.begin(), searches_.end(), [&](const auto& search) { return search.first.job == job; });
}

}  // namespace muster
