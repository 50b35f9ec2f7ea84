#include "muster/launch/agent_server/exits_at_signal.h"

namespace muster {

void ExitsAtSignal::OnSignal() {
  if (settle_ == absl::ZeroDuration()) return;
  signalled_ = clock_.Now();
  for (Waiting& end : waiting_) {
    end.exit.at_signal |= end.by_code;
    end.due = signalled_;
  }
}

void ExitsAtSignal::OnExit(const CommandId& launch, const ExitStatus& status, absl::Time begun) {
  const absl::Time now = clock_.Now();
  const bool by_code = status.signal == 0 && status.over_memory == 0;
  const bool answers = by_code && begun <= signalled_ && now - signalled_ <= kAnswer;
  waiting_.push_back({.exit = {.launch = launch, .at_signal = answers}, .by_code = by_code, .due = now + settle_});
}

absl::Time ExitsAtSignal::deadline() const { return waiting_.empty() ? absl::InfiniteFuture() : waiting_.front().due; }

std::vector<ExitsAtSignal::Exit> ExitsAtSignal::TakeDue() {
  const absl::Time now = clock_.Now();
  std::vector<Exit> due;
  for (; !waiting_.empty() && waiting_.front().due <= now; waiting_.pop_front()) due.push_back(waiting_.front().exit);
  return due;
}

}  // namespace muster
