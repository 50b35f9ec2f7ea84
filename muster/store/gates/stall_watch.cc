#include "muster/store/gates/stall_watch.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/log.h"

namespace muster {
namespace {

constexpr absl::Duration kFirstNotice = absl::Seconds(5);

std::string Seconds(absl::Duration duration) { return absl::FormatDuration(absl::Trunc(duration, absl::Seconds(1))); }

}  // namespace

void StallWatch::Attach(Arena& arena) {
  arena_ = &arena;
  debtors_.assign(clients_.clients().size(), {});
  StartRound();
}

bool StallWatch::InRound(size_t client) const {
  return arena_->client(static_cast<int>(client)).numbers.contributed == round() + 1;
}

void StallWatch::StartRound() {
  round_ = round();
  waits_since_ = next_notice_ = absl::InfiniteFuture();
  for (Debtor& debtor : debtors_) debtor = {.last_applied = debtor.last_applied};
}

void StallWatch::Forgive(absl::Duration late) {
  waits_since_ += late;
  next_notice_ += late;
  for (Debtor& debtor : debtors_) {
    debtor.since += late;
    debtor.excluded_at += late;
  }
}

absl::Duration StallWatch::LimitOf(const ClientTable::Client& client) const {
  const absl::Duration least = clients_.options().stall_limit;
  const bool forgets = probe_ != nullptr && probe_->Has(PlantedBug::kForgetExclusion);
  if (least <= absl::ZeroDuration() || !arena_->model().gate.elastic || forgets) return absl::InfiniteDuration();
  return std::max(least, LeaseOptions::kStallSteps * client.step);
}

bool StallWatch::Recheck(absl::Time now, bool held_back) {
  if (arena_ == nullptr) return false;
  const bool changed = ReadmitThoseWhoPushed();
  if (round_ != round() || held_back || arena_->header().gate.contributors == 0) StartRound();
  if (held_back || arena_->header().gate.contributors == 0) return changed;
  if (waits_since_ == absl::InfiniteFuture()) {
    waits_since_ = now;
    next_notice_ = now + kFirstNotice;
  }
  for (size_t i = 0; i < debtors_.size(); ++i) Note(debtors_[i], i, now);
  SayWhoWaits(now);
  return ExcludeLate(now) || changed;
}

// A worker that applies its updates itself pushes without a message, and numbers tell.
bool StallWatch::ReadmitThoseWhoPushed() {
  bool changed = false;
  for (size_t i = 0; i < debtors_.size(); ++i) {
    const bool pushed = arena_->client(static_cast<int>(i)).numbers.last_applied != debtors_[i].last_applied;
    if (clients_.clients()[i].excluded.empty() || !pushed) continue;
    clients_.Readmit(static_cast<int>(i));
    changed = true;
  }
  return changed;
}

void StallWatch::Note(Debtor& debtor, size_t index, absl::Time now) const {
  const ClientTable::Client& client = clients_.clients()[index];
  const bool owes = clients_.Present(client, now) && !InRound(index);
  const bool runs = owes && client.busy.empty() && client.steps >= HeartbeatRequest::kFirstSteps;
  debtor.since = runs ? std::min(debtor.since, now) : absl::InfiniteFuture();
  debtor.excluded_at = debtor.since + LimitOf(client);
}

bool StallWatch::ExcludeLate(absl::Time now) {
  bool changed = false;
  for (size_t i = 0; i < debtors_.size(); ++i) {
    Debtor& debtor = debtors_[i];
    if (now < debtor.excluded_at) continue;
    const ClientTable::Client& client = clients_.clients()[i];
    const std::string usual = client.step > absl::ZeroDuration()
                                  ? absl::StrCat(" (its steps take ", absl::FormatDuration(client.step), ")")
                                  : "";
    clients_.Exclude(static_cast<int>(i),
                     absl::StrCat("it is heard, but has kept round ", round_, " waiting for ",
                                  Seconds(now - debtor.since), usual, "; it is back with its next push"));
    debtor = {.last_applied = arena_->client(static_cast<int>(i)).numbers.last_applied};
    changed = true;
  }
  return changed;
}

absl::Time StallWatch::NextCheck() const {
  absl::Time next = next_notice_;
  for (const Debtor& debtor : debtors_) next = std::min(next, debtor.excluded_at);
  return next;
}

std::string StallWatch::Describe(absl::Time now) const {
  if (arena_ == nullptr || waits_since_ == absl::InfiniteFuture() || round_ != round()) return "";
  std::vector<std::string> missing;
  std::vector<std::string> fates;
  for (size_t i = 0; i < debtors_.size(); ++i) {
    const ClientTable::Client& client = clients_.clients()[i];
    if (client.done || InRound(i)) continue;
    const std::string state = client.incarnation == 0                        ? " (not joined)"
                              : !client.excluded.empty()                     ? " (excluded)"
                              : !clients_.Alive(client, now)                 ? " (lost)"
                              : !client.busy.empty()                         ? absl::StrCat(" (", client.busy, ")")
                              : client.steps < HeartbeatRequest::kFirstSteps ? " (in its first steps)"
                                                                             : "";
    missing.push_back(client.task + state);
    if (debtors_[i].excluded_at < absl::InfiniteFuture())
      fates.push_back(
          absl::StrCat(client.task, " is excluded after ", Seconds(debtors_[i].excluded_at - waits_since_)));
  }
  if (missing.empty()) return "";
  const bool elastic = arena_->model().gate.elastic;
  if (!elastic) fates = {"the gate isn't elastic, and waits for as long as that takes"};
  return absl::StrCat("round ", round_, " has waited ", Seconds(now - waits_since_), " for ",
                      absl::StrJoin(missing, ", "), " (", arena_->header().gate.contributors, " contributed)",
                      fates.empty() ? "" : "; ", absl::StrJoin(fates, ", "));
}

// Twice as long after each line.
void StallWatch::SayWhoWaits(absl::Time now) {
  if (now < next_notice_) return;
  next_notice_ = now + (now - waits_since_);
  if (const std::string who = Describe(now); !who.empty()) LogInfo(who);
}

}  // namespace muster
