#include "muster/store/work/work_queue.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

constexpr size_t kMaxWorkName = 256;
// Far from where 64-bit numbers would wrap around.
constexpr uint64_t kMaxWorkNumber = uint64_t{1} << 62;
constexpr int64_t kMaxWorkPlace = int64_t{1} << 53;

bool IsPlausible(const WorkUnit& unit, const WorkSpec& spec) {
  return unit.epoch >= 0 && unit.begin >= 0 && unit.begin < unit.end && unit.end <= spec.rows;
}

}  // namespace

absl::Status ValidateWork(const WorkSpec& spec) {
  const auto bad = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("work queue '", spec.name, "': ", what));
  };
  if (spec.name.empty() || spec.name.size() > kMaxWorkName)
    return bad(absl::StrCat("its name has ", spec.name.size(), " bytes; accepted: 1 to ", kMaxWorkName));
  if (spec.rows < 1 || spec.rows > kMaxWorkPlace)
    return bad(absl::StrCat(spec.rows, " rows; accepted: 1 to ", kMaxWorkPlace));
  if (spec.rows_per_unit < 1 || spec.rows_per_unit > kMaxWorkPlace)
    return bad(absl::StrCat(spec.rows_per_unit, " rows a unit; accepted: 1 to ", kMaxWorkPlace));
  if (spec.epochs < 0 || spec.epochs > kMaxWorkPlace)
    return bad(absl::StrCat(spec.epochs, " epochs; accepted: 0 (for ever) to ", kMaxWorkPlace));
  return absl::OkStatus();
}

std::string DescribeWork(const WorkSpec& spec) {
  const std::string epochs = spec.epochs == 0   ? "epochs without end"
                             : spec.epochs == 1 ? "1 epoch"
                                                : absl::StrCat(spec.epochs, " epochs");
  return absl::StrCat(spec.rows, " rows in units of ", spec.rows_per_unit, ", ", epochs);
}

size_t WorkQueue::Holder::left() const {
  return static_cast<size_t>(
      std::count_if(units.begin(), units.end(), [&](const Entry& entry) { return entry.ticket > progress.counted; }));
}

size_t WorkQueue::Holder::ahead() const {
  const uint64_t used = std::max(over, progress.counted);
  return static_cast<size_t>(
      std::count_if(units.begin(), units.end(), [used](const Entry& entry) { return entry.ticket > used; }));
}

void WorkQueue::Note(int client, const Progress& progress) {
  const MutexLock lock(mutex_);
  Holder& holder = holders_[static_cast<size_t>(client)];
  Progress& known = holder.progress;
  known.counted = std::max(known.counted, progress.counted);
  known.fired = std::max(known.fired, progress.fired);
  known.applied = std::max(known.applied, progress.applied);
  while (!holder.units.empty() && holder.units.front().ticket <= known.fired) {
    holder.units.pop_front();
    touched_ = true;
  }
}

template <typename Gone>
size_t WorkQueue::Free(Holder& holder, Gone gone) {
  std::vector<WorkUnit> freed;
  std::erase_if(holder.units, [&](const Entry& entry) {
    if (entry.ticket <= holder.progress.counted || !gone(entry.ticket)) return false;
    freed.push_back(entry.unit);
    return true;
  });
  free_.insert(freed.begin(), freed.end());
  return freed.size();
}

size_t WorkQueue::ReturnAll(Holder& holder) {
  return Free(holder, [](uint64_t) { return true; });
}

size_t WorkQueue::Return(int client) {
  const MutexLock lock(mutex_);
  Holder& holder = holders_[static_cast<size_t>(client)];
  holder.waits = false;
  return ReturnAll(holder);
}

void WorkQueue::GiveUp(int client, const std::vector<uint64_t>& tickets) {
  const MutexLock lock(mutex_);
  Free(holders_[static_cast<size_t>(client)],
       [&](uint64_t ticket) { return std::find(tickets.begin(), tickets.end(), ticket) != tickets.end(); });
}

bool WorkQueue::Holds(int client) const {
  const MutexLock lock(mutex_);
  return !holders_[static_cast<size_t>(client)].units.empty();
}

uint64_t WorkQueue::Incarnation(int client) const {
  const MutexLock lock(mutex_);
  return holders_[static_cast<size_t>(client)].incarnation;
}

uint64_t WorkQueue::LastTicket(int client) const {
  const MutexLock lock(mutex_);
  return holders_[static_cast<size_t>(client)].last;
}

void WorkQueue::Begin(const WorkSpec& spec) {
  spec_ = spec;
  epoch_ = next_ = 0;
  free_.clear();
}

// Continues the loaded state with what the workers ask for.
void WorkQueue::Fit(const WorkSpec& spec) {
  if (spec_.name != spec.name || spec_.rows != spec.rows) {
    if (!spec_.name.empty())
      LogWarning("the checkpoint's work queue is '", spec_.name, "' (", DescribeWork(spec_), "), not '", spec.name,
                 "' (", DescribeWork(spec), "): the new one begins with its first epoch");
    return Begin(spec);
  }
  spec_ = spec;
  std::erase_if(free_, [&](const WorkUnit& unit) { return spec.epochs > 0 && unit.epoch >= spec.epochs; });
}

absl::Status WorkQueue::Adopt(const WorkSpec& spec) {
  if (wanted_ && *wanted_ != spec)
    return absl::InvalidArgumentError(absl::StrCat("the work that is shared out is '", wanted_->name, "' (",
                                                   DescribeWork(*wanted_), "), and this worker asks for '", spec.name,
                                                   "' (", DescribeWork(spec),
                                                   "): open the same in every worker; a job has one work queue"));
  if (wanted_) return absl::OkStatus();
  wanted_ = spec;
  Fit(spec);
  return absl::OkStatus();
}

// At the end of the last epoch, a worker that has used up its units waits until the others' units are done, and with a
// synchronous gate or bounded staleness the others wait for it: neither would end if one had some ready and the other
// none. So no client gets a further unit unless all could have as many.
bool WorkQueue::HasItsShare(const Holder& holder) const {
  const size_t ahead = holder.ahead();
  if (ahead == 0 || spec_.epochs == 0 || holders_.size() == 1) return false;
  const auto enough = static_cast<int64_t>(holders_.size() * (ahead + 1));
  if (spec_.epochs - epoch_ > enough) return false;  // each client gets one at least
  const auto units_of = [enough, of_unit = spec_.rows_per_unit](int64_t rows) {
    return std::min((rows + of_unit - 1) / of_unit, enough + 1);
  };
  const int64_t whole_epochs = std::max<int64_t>(spec_.epochs - epoch_ - 1, 0);
  const int64_t of_this_one = epoch_ < spec_.epochs ? units_of(spec_.rows - next_) : 0;
  const int64_t left = static_cast<int64_t>(free_.size()) + of_this_one + whole_epochs * units_of(spec_.rows);
  return left > 0 && left <= enough;
}

std::optional<WorkUnit> WorkQueue::Next() {
  if (!free_.empty()) {
    WorkUnit unit = free_.extract(free_.begin()).value();
    // From a checkpoint with larger units.
    if (unit.end - unit.begin > spec_.rows_per_unit) {
      free_.insert({unit.epoch, unit.begin + spec_.rows_per_unit, unit.end});
      unit.end = unit.begin + spec_.rows_per_unit;
    }
    return unit;
  }
  if (spec_.epochs > 0 && epoch_ >= spec_.epochs) return std::nullopt;
  const WorkUnit unit = {epoch_, next_, next_ + std::min(spec_.rows_per_unit, spec_.rows - next_)};
  next_ = unit.end;
  if (next_ == spec_.rows) {
    ++epoch_;
    next_ = 0;
  }
  return unit;
}

WorkAnswer WorkQueue::WaitOrEnd(size_t client) const {
  bool with_others = false;
  bool stuck = true;
  size_t last = 0;
  for (size_t i = 0; i < holders_.size(); ++i) {
    const Holder& holder = holders_[i];
    for (const Entry& entry : holder.units) {
      if (entry.ticket <= holder.progress.counted) continue;
      with_others = with_others || i != client;
      stuck = stuck && entry.ticket <= holder.over && (holder.waits || i == client);
      last = i;
    }
  }
  // All steps are over, and the workers that made them wait for more: their windows aren't full, and never will be. The
  // end of the input makes a worker push what it has. Ends them one after the other, so that a worker is left to redo a
  // lost unit.
  return !with_others || (stuck && client == last) ? WorkAnswer::kEnd : WorkAnswer::kWait;
}

absl::StatusOr<TakeWorkReply> WorkQueue::Take(const TakeWorkRequest& request) {
  RETURN_IF_ERROR(ValidateWork(request.spec));
  const uint64_t number = request.stamp.sequence;
  const MutexLock lock(mutex_);
  if (request.stamp.client >= holders_.size() || number == 0 || std::max(number, request.after) > kMaxWorkNumber)
    return absl::InvalidArgumentError(absl::StrCat("request ", number, " for work after ticket ", request.after,
                                                   " of client ", request.stamp.client, " of ", holders_.size()));
  RETURN_IF_ERROR(Adopt(request.spec));
  Holder& holder = holders_[request.stamp.client];
  if (holder.incarnation != request.stamp.incarnation) {
    ReturnAll(holder);
    holder.incarnation = request.stamp.incarnation;
    holder.newest = holder.given = holder.over = 0;
  }
  if (number < holder.newest)
    return absl::FailedPreconditionError(
        absl::StrCat("request ", number, " for work came after request ", holder.newest, ": a late copy"));
  holder.waits = false;
  holder.over = std::max(holder.over, request.over);
  const auto reply = [](const Entry& entry) {
    return TakeWorkReply{WorkAnswer::kUnit, entry.ticket, entry.unit.epoch, entry.unit.begin, entry.unit.end};
  };
  if (number == holder.newest && !holder.units.empty() && holder.units.back().ticket == holder.given)
    return reply(holder.units.back());
  // Nobody will ever hear the answers to requests that were given up.
  Free(holder, [&](uint64_t ticket) { return ticket > request.after; });
  holder.newest = number;
  holder.given = 0;
  if (holder.units.size() >= kMostWorkInHand)
    return absl::ResourceExhaustedError(absl::StrCat("a worker may have ", kMostWorkInHand,
                                                     " units of work whose updates aren't counted; prefetch less, push "
                                                     "more often, or share larger units"));
  if (HasItsShare(holder)) return TakeWorkReply{.answer = WorkAnswer::kWait};
  const std::optional<WorkUnit> unit = Next();
  if (!unit) {
    const WorkAnswer answer = WaitOrEnd(request.stamp.client);
    holder.waits = answer == WorkAnswer::kWait;
    return TakeWorkReply{.answer = answer};
  }
  holder.given = holder.last = std::max(holder.last, request.after) + 1;
  holder.units.push_back({holder.given, *unit});
  return reply(holder.units.back());
}

std::optional<WorkState> WorkQueue::Save() const {
  const MutexLock lock(mutex_);
  if (spec_.name.empty()) return std::nullopt;
  WorkState state{.spec = spec_, .epoch = epoch_, .next = next_};
  for (const WorkUnit& unit : free_) state.entries.push_back({unit.epoch, unit.begin, unit.end});
  for (size_t i = 0; i < holders_.size(); ++i) {
    const Holder& holder = holders_[i];
    for (const Entry& entry : holder.units)
      state.entries.push_back({entry.unit.epoch, entry.unit.begin, entry.unit.end, i + 1, entry.ticket,
                               entry.ticket > holder.progress.counted && entry.ticket <= holder.progress.applied});
    if (holder.last > 0 || holder.incarnation != 0)
      state.holders.push_back({i, holder.incarnation, holder.newest, holder.given, holder.last});
  }
  return state;
}

bool WorkQueue::Load(const std::optional<WorkState>& state) {
  const MutexLock lock(mutex_);
  if (!state && !touched_) return false;
  for (Holder& holder : holders_) {
    holder.units.clear();
    holder.waits = false;
  }
  Begin(state ? state->spec : WorkSpec());
  touched_ = state.has_value();
  if (state) {
    epoch_ = std::clamp<int64_t>(state->epoch, 0, kMaxWorkPlace);
    next_ = state->next >= 0 && state->next < spec_.rows ? state->next : 0;
    for (const WorkEntry& entry : state->entries)
      if (const WorkUnit unit = {entry.epoch, entry.begin, entry.end}; IsPlausible(unit, spec_)) free_.insert(unit);
  }
  if (wanted_) Fit(*wanted_);
  return true;
}

void WorkQueue::Restore(const WorkState& state) {
  const MutexLock lock(mutex_);
  Begin(state.spec);
  // A loaded state is fitted when the first worker asks.
  if (!state.holders.empty()) wanted_ = state.spec;
  touched_ = true;
  epoch_ = state.epoch;
  next_ = state.next;
  for (const WorkHolder& kept : state.holders) {
    if (kept.client >= holders_.size()) continue;
    Holder& holder = holders_[kept.client];
    holder = {.incarnation = kept.incarnation, .newest = kept.newest, .given = kept.given, .last = kept.last};
  }
  for (const WorkEntry& entry : state.entries) {
    const WorkUnit unit = {entry.epoch, entry.begin, entry.end};
    if (entry.holder == 0 || entry.holder > holders_.size()) {
      free_.insert(unit);
    } else {
      holders_[entry.holder - 1].units.push_back({entry.ticket, unit});
    }
  }
}

std::optional<WorkQueue::View> WorkQueue::Describe() const {
  const MutexLock lock(mutex_);
  if (!wanted_) return std::nullopt;
  View view{.spec = spec_, .epoch = epoch_, .next = next_, .returned = free_.size()};
  for (size_t i = 0; i < holders_.size(); ++i)
    if (const size_t units = holders_[i].left(); units > 0 || holders_[i].waits)
      view.hands.push_back({static_cast<int>(i), units, holders_[i].waits});
  return view;
}

}  // namespace muster
