#include "muster/transport/call_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace muster {

CallTable::CallTable(EventLoop& loop, absl::AnyInvocable<void(uint64_t)> expired)
    : loop_(loop), expired_(std::move(expired)) {}

CallTable::~CallTable() {
  lifetime_.End();
  loop_.CancelTimer(watch_);
  // Takes the endings out first: a callback that looks at its channel must not find a call that is about to end.
  std::deque<Ending> endings = std::move(endings_);
  for (uint64_t id : Ids()) {
    endings.push_back({TakeOut(id), absl::CancelledError(absl::StrCat(peer_, ": the channel was closed"))});
  }
  for (Ending& ending : endings) ending.done(ending.result);
}

uint64_t CallTable::Add(const Request& request, ReplyCallback done) {
  std::unique_ptr<Call> call;
  if (spare_.empty()) {
    call = std::make_unique<Call>();
  } else {
    call = std::move(spare_.back());
    spare_.pop_back();
  }
  call->request = request;
  call->done = std::move(done);
  call->started = loop_.Now();
  call->sent = false;
  const absl::Time deadline = call->request.deadline;
  calls_.emplace(++last_id_, std::move(call));
  WatchDeadline(deadline);
  return last_id_;
}

CallTable::Call* CallTable::Find(uint64_t id) {
  auto it = calls_.find(id);
  return it == calls_.end() ? nullptr : it->second.get();
}

std::vector<uint64_t> CallTable::Ids() const {
  std::vector<uint64_t> ids;
  ids.reserve(calls_.size());
  for (const auto& [id, call] : calls_) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::string CallTable::Finish(uint64_t id, absl::StatusOr<Reply> result) {
  ReplyCallback done = TakeOut(id);
  done(result);
  return result.ok() ? std::move(result->control) : std::string();
}

void CallTable::FinishLater(uint64_t id, absl::StatusOr<Reply> result) {
  endings_.push_back({TakeOut(id), std::move(result)});
  if (endings_posted_) return;
  endings_posted_ = true;
  loop_.Post(lifetime_.Guard([this] { RunEndings(); }));
}

void CallTable::FinishAll(const std::vector<uint64_t>& ids, const absl::Status& status) {
  const Lifetime::Token token = lifetime_.token();
  for (uint64_t id : ids) {
    if (!token.alive()) return;  // the destructor has ended the rest
    if (calls_.contains(id)) Finish(id, status);
  }
}

ReplyCallback CallTable::TakeOut(uint64_t id) {
  auto it = calls_.find(id);
  std::unique_ptr<Call> call = std::move(it->second);
  calls_.erase(it);
  ReplyCallback done = std::move(call->done);
  // Keeps the call's strings and vectors, so that their memory is reused.
  constexpr size_t kMostControl = 64 << 10;
  if (call->request.control.capacity() > kMostControl) call->request.control = std::string();
  call->request.bulk.clear();
  call->request.into.clear();
  constexpr size_t kMostSpare = 64;
  if (spare_.size() < kMostSpare) spare_.push_back(std::move(call));
  return done;
}

void CallTable::WatchDeadline(absl::Time deadline) {
  if (deadline >= watched_) return;
  loop_.CancelTimer(watch_);
  watched_ = deadline;
  watch_ = loop_.CallAt(deadline, [this] { OnDeadline(); });
}

void CallTable::OnDeadline() {
  const absl::Time now = loop_.Now();
  watched_ = absl::InfiniteFuture();
  std::vector<uint64_t> expired;
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [id, call] : calls_) {
    if (call->request.deadline <= now) {
      expired.push_back(id);
    } else {
      next = std::min(next, call->request.deadline);
    }
  }
  WatchDeadline(next);
  std::sort(expired.begin(), expired.end());
  const Lifetime::Token token = lifetime_.token();
  for (uint64_t id : expired) {
    if (!token.alive()) return;
    if (calls_.contains(id)) expired_(id);
  }
}

void CallTable::RunEndings() {
  endings_posted_ = false;
  // One at a time: a callback may destroy the table, whose destructor then calls the rest.
  const Lifetime::Token token = lifetime_.token();
  while (token.alive() && !endings_.empty()) {
    Ending ending = std::move(endings_.front());
    endings_.pop_front();
    ending.done(ending.result);
  }
}

absl::Status UnreachableError(const std::string& peer, absl::Duration waited, const std::string& reason) {
  // Rounds to 10 ms: some microseconds of a minute's deadline had passed before the call began.
  const absl::Duration shown = absl::Trunc(waited + absl::Milliseconds(5), absl::Milliseconds(10));
  return absl::DeadlineExceededError(
      absl::StrCat(peer, " could not be reached within ", absl::FormatDuration(shown), ": ", reason));
}

}  // namespace muster
