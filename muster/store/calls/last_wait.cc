#include "muster/store/calls/last_wait.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/store/calls/ps_calls.h"

namespace muster {
namespace {

constexpr char kInterrupted[] = "muster/interrupted";
// Longer than a living ps mostly takes to answer: before that, nothing is asked or logged.
constexpr absl::Duration kBeforeQuestion = absl::Milliseconds(500);
// More than a channel sends on its own while a question is open: pings, and handshakes of new connections, which a
// kernel accepts even for a stopped process.
constexpr uint64_t kOwnBytes = 1024;

// Whether bytes move: then the question, or its answer, may only be queued behind a slow message.
bool Moves(const Channel::Stats& before, const Channel::Stats& now) {
  return now.bytes_received > before.bytes_received || now.bytes_sent > before.bytes_sent + kOwnBytes;
}

}  // namespace

absl::Status InterruptedError(const absl::Status& why) {
  absl::Status status =
      absl::CancelledError(absl::StrCat("interrupted, and ended without a ps that is gone: ", why.message()));
  status.SetPayload(kInterrupted, absl::Cord());
  return status;
}

bool IsInterrupted(const absl::Status& status) { return status.GetPayload(kInterrupted).has_value(); }

absl::StatusOr<bool> LastWait::RunUntil(absl::FunctionRef<bool()> settled, absl::Time deadline) {
  EventLoop& loop = ps_calls_.loop();
  const auto& stop_requested = ps_calls_.options().stop_requested;
  while (!settled()) {
    const bool stopping = stop_requested();
    const auto settled_or_stopped = [&] { return settled() || (!stopping && stop_requested()); };
    const absl::Time until = stopping ? std::min(deadline, loop.Now() + kBeforeQuestion) : deadline;
    if (loop.RunUntil(settled_or_stopped, until)) continue;
    if (loop.Now() >= deadline) return false;
    RETURN_IF_ERROR(Ask(settled));
  }
  return true;
}

absl::Status LastWait::Ask(absl::FunctionRef<bool()> settled) {
  std::vector<StoreCall> questions;
  for (const int ps : silent_()) questions.push_back({.ps = ps, .method = StoreMethod::kStatus});
  if (questions.empty()) return absl::OkStatus();
  const absl::Duration patience = ps_calls_.options().stop_patience;
  if (!std::exchange(said_, true))
    LogInfo("a stop was asked for; ", ps_calls_.Name(questions[0].ps), " is given ", absl::FormatDuration(patience),
            " to answer. Another signal ends this process at once.");
  int unanswered = static_cast<int>(questions.size());
  for (StoreCall& question : questions) ps_calls_.Send(question, ps_calls_.loop().Now() + patience, unanswered);
  std::vector<Channel::Stats> asked;
  for (const StoreCall& question : questions) asked.push_back(ps_calls_.TrafficStats(question.ps));
  ps_calls_.loop().RunUntil([&] { return unanswered == 0 || settled(); }, absl::InfiniteFuture());
  if (unanswered > 0) {
    ps_calls_.Abandon(questions, unanswered);
    return absl::OkStatus();
  }
  absl::Status gone;
  for (size_t i = 0; i < questions.size(); ++i) {
    const int ps = questions[i].ps;
    const absl::Status answered = ps_calls_.Annotate(ps, questions[i].answer.status());
    if (!absl::IsUnavailable(answered) || Moves(asked[i], ps_calls_.TrafficStats(ps))) continue;
    ps_calls_.joined(ps).ps_incarnation = 0;  // so that Done skips it
    gone.Update(answered);
  }
  return gone.ok() ? absl::OkStatus() : InterruptedError(gone);
}

}  // namespace muster
