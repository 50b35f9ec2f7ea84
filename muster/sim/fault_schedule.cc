#include "muster/sim/fault_schedule.h"

#include <algorithm>
#include <initializer_list>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/transport/simulated/simulated_world.h"

namespace muster {
namespace {

std::string Shown(absl::Duration duration) {
  return duration == absl::InfiniteDuration() ? "ever" : absl::FormatDuration(duration);
}

// Draws everything in a schedule. Avoids the standard distributions, whose numbers differ between libraries.
class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}

  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool OneIn(int n) { return Between(1, n) == 1; }
  absl::Duration Time(absl::Duration low, absl::Duration high) {
    return low + absl::Nanoseconds(Between(0, absl::ToInt64Nanoseconds(high - low)));
  }
  // Usually short, sometimes up to `high`.
  absl::Duration ShortTime(absl::Duration high) { return Time(absl::ZeroDuration(), OneIn(3) ? high : high / 20); }

 private:
  std::mt19937_64 random_;
};

ScheduledFaultKind DrawKind(Draw& draw) {
  using Kind = ScheduledFaultKind;
  const int64_t drawn = draw.Between(0, 99);
  if (drawn < 20) return Kind::kCut;
  if (drawn < 33) return Kind::kPart;
  if (drawn < 50) return Kind::kKillWorker;
  if (drawn < 58) return Kind::kPauseWorker;
  if (drawn < 64) return Kind::kPausePs;
  if (drawn < 71) return Kind::kReplaceWorker;
  if (drawn < 74) return Kind::kStopWorker;
  if (drawn < 75) return Kind::kShutdown;
  return drawn < 85 ? Kind::kKillPs : Kind::kKillPsInside;
}

ScheduledFault DrawFault(Draw& draw, const Schedule& schedule, absl::Duration during, bool ps_may_forget) {
  using Kind = ScheduledFaultKind;
  ScheduledFault fault{.kind = DrawKind(draw),
                       .at = draw.Time(absl::ZeroDuration(), during),
                       .worker = static_cast<int>(draw.Between(0, schedule.num_workers - 1)),
                       .ps = static_cast<int>(draw.Between(0, schedule.num_ps - 1))};
  switch (fault.kind) {
    case Kind::kKillPs:
    case Kind::kKillPsInside:
      fault.passes = draw.Between(1, 80);
      fault.forgets = ps_may_forget && draw.OneIn(2);
      [[fallthrough]];
    case Kind::kKillWorker:
      fault.lasts = draw.OneIn(8) ? absl::InfiniteDuration() : draw.ShortTime(absl::Seconds(20));
      break;
    case Kind::kReplaceWorker:
      fault.lasts = draw.Time(absl::Seconds(1), absl::Seconds(25));
      fault.then = draw.Time(absl::ZeroDuration(), absl::Seconds(20));
      break;
    case Kind::kCut:
      fault.lasts = draw.ShortTime(absl::Milliseconds(200));
      fault.then = draw.ShortTime(absl::Seconds(2));
      break;
    default:
      fault.lasts = draw.ShortTime(absl::Seconds(15));
  }
  return fault;
}

// Uses its own generator, so that the other faults of a seed don't depend on it. Often longer than the limit after
// which a round goes on without a worker that hangs.
void DrawHangs(Schedule& schedule, absl::Duration during) {
  using Kind = ScheduledFaultKind;
  Draw draw(HashNumbers(schedule.seed, 3));
  if (!draw.OneIn(4)) return;
  constexpr Kind kKinds[] = {Kind::kHangWorker, Kind::kDeafWorker, Kind::kMuteWorker};
  for (int64_t left = draw.Between(1, 2); left > 0; --left)
    schedule.faults.push_back({.kind = kKinds[draw.Between(0, 2)],
                               .at = draw.Time(absl::ZeroDuration(), during),
                               .worker = static_cast<int>(draw.Between(0, schedule.num_workers - 1)),
                               .ps = static_cast<int>(draw.Between(0, schedule.num_ps - 1)),
                               .lasts = draw.Time(absl::Seconds(1), absl::Seconds(30))});
}

// Draws as many minibatches as for other schedules: so the faults fall into the run, and the ledger has digits for
// them.
void DrawWindow(Draw& draw, Schedule& schedule, int64_t smallest) {
  schedule.window = static_cast<uint32_t>(draw.Between(smallest, 4));
  schedule.differences = draw.OneIn(2);
  schedule.own_minibatches = draw.OneIn(2) ? draw.Between(1, schedule.last_step) : 0;
  schedule.last_step = std::max<int64_t>(3, schedule.last_step / schedule.window);
  if (schedule.save_steps > 0) schedule.save_steps = std::max<int64_t>(1, schedule.save_steps / schedule.window);
}

void DrawWindows(Draw& draw, Schedule& schedule) {
  const int64_t drawn = draw.Between(0, 15);
  if (drawn >= 6) return;
  schedule.work = drawn < 3 ? ScheduledWork::kWindows : ScheduledWork::kOrdered;
  DrawWindow(draw, schedule, drawn < 3 ? 2 : 1);
  if (schedule.rows > 6 || draw.OneIn(2)) return;  // with scaling an element has one minibatch, so rows are longer
  const bool by_staleness = schedule.work == ScheduledWork::kWindows && !draw.OneIn(3);
  schedule.scale = by_staleness ? ScheduledScale::kStaleness : ScheduledScale::kMean;
}

// Uses its own generator, so that cluster, network and faults of a seed don't depend on the work.
void DrawWork(Schedule& schedule) {
  Draw draw(~schedule.seed);
  const int64_t drawn = draw.Between(0, 9);
  schedule.work = drawn < 5   ? ScheduledWork::kAsynchronous
                  : drawn < 8 ? ScheduledWork::kSynchronous
                              : ScheduledWork::kBoundedStaleness;
  schedule.replicas = static_cast<int>(draw.Between(1, schedule.num_workers));
  schedule.elastic = !draw.OneIn(3);
  schedule.staleness_bound = static_cast<int>(draw.Between(0, 3));
  schedule.barriers = draw.OneIn(4);
  if (schedule.work == ScheduledWork::kAsynchronous) DrawWindows(draw, schedule);
  if (schedule.work == ScheduledWork::kBoundedStaleness && draw.OneIn(2)) DrawWindow(draw, schedule, 2);
  schedule.in_turn = schedule.work == ScheduledWork::kSynchronous && !schedule.elastic && draw.OneIn(2);
  if (schedule.in_turn) schedule.replicas = schedule.num_workers;
}

std::string ShownWindow(const Schedule& schedule) {
  if (schedule.window == 1 && schedule.work == ScheduledWork::kBoundedStaleness) return "";
  const auto scale = [&] {
    switch (schedule.scale) {
      case ScheduledScale::kMean:
        return ", divided by them";
      case ScheduledScale::kStaleness:
        return ", scaled by staleness";
      case ScheduledScale::kNone:
        break;
    }
    return "";
  };
  return absl::StrCat(
      ", ", schedule.differences ? "differences" : "sums", " of ", schedule.window, " minibatches", scale(),
      schedule.own_minibatches > 0 ? absl::StrCat(", ", schedule.own_minibatches, " of each process at most") : "");
}

std::string Shown(const Schedule& schedule) {
  const std::string barriers = schedule.barriers ? ", barriers" : "";
  switch (schedule.work) {
    case ScheduledWork::kAsynchronous:
      return absl::StrCat("asynchronous", barriers);
    case ScheduledWork::kWindows:
    case ScheduledWork::kOrdered:
      return absl::StrCat(schedule.work == ScheduledWork::kOrdered ? "in order" : "asynchronous", ShownWindow(schedule),
                          barriers);
    case ScheduledWork::kSynchronous:
      return absl::StrCat("synchronous, ", schedule.replicas, " of ", schedule.num_workers,
                          schedule.elastic   ? " (elastic)"
                          : schedule.in_turn ? ", in order"
                                             : "",
                          barriers);
    case ScheduledWork::kBoundedStaleness:
      return absl::StrCat("staleness bound ", schedule.staleness_bound, ShownWindow(schedule), barriers);
  }
  return barriers;
}

bool Has(const Schedule& schedule, std::initializer_list<ScheduledFaultKind> kinds) {
  return std::any_of(schedule.faults.begin(), schedule.faults.end(), [&](const ScheduledFault& fault) {
    return std::find(kinds.begin(), kinds.end(), fault.kind) != kinds.end();
  });
}

}  // namespace

std::string ScheduledFault::ToString() const {
  using Kind = ScheduledFaultKind;
  const std::string when = absl::StrCat("at ", absl::FormatDuration(at), ": ");
  const std::string between = absl::StrCat("worker ", worker, " and ps ", ps);
  switch (kind) {
    case Kind::kKillWorker:
      return absl::StrCat(when, "kill worker ", worker, ", dead for ", Shown(lasts));
    case Kind::kKillPs:
    case Kind::kKillPsInside:
      return absl::StrCat(when, "kill ps ", ps, kind == Kind::kKillPs ? "" : absl::StrCat(" at point ", passes),
                          ", dead for ", Shown(lasts), forgets ? ", its memory lost" : "");
    case Kind::kPauseWorker:
      return absl::StrCat(when, "stop worker ", worker, " for ", Shown(lasts));
    case Kind::kPausePs:
      return absl::StrCat(when, "stop ps ", ps, " for ", Shown(lasts));
    case Kind::kHangWorker:
      return absl::StrCat(when, "hang the training thread of worker ", worker, " for ", Shown(lasts));
    case Kind::kReplaceWorker:
      return absl::StrCat(when, "stop worker ", worker, " for ", Shown(lasts), ", start another one after ",
                          Shown(then));
    case Kind::kCut:
      return absl::StrCat(when, "cut ", between, ", seen after ", Shown(lasts), " and ", Shown(then));
    case Kind::kPart:
      return absl::StrCat(when, "part ", between, " for ", Shown(lasts));
    case Kind::kDeafWorker:
      return absl::StrCat(when, "worker ", worker, " hears nothing of ps ", ps, " for ", Shown(lasts));
    case Kind::kMuteWorker:
      return absl::StrCat(when, "ps ", ps, " hears nothing of worker ", worker, " for ", Shown(lasts));
    case Kind::kStopWorker:
      return absl::StrCat(when, "Ctrl-C at worker ", worker);
    case Kind::kShutdown:
      return absl::StrCat(when, "shut the ps down");
  }
  return when;
}

bool Schedule::MustSucceed() const {
  // A ps that dies forgets an open barrier: a worker that hasn't heard of the opening waits for workers that have left.
  if (barriers && Has(*this, {ScheduledFaultKind::kKillPs, ScheduledFaultKind::kKillPsInside})) return false;
  // A non-elastic gate, or a barrier of all workers, waits for ever for a worker that was interrupted.
  const bool misses = barriers || (work == ScheduledWork::kSynchronous && !elastic);
  if (misses && Has(*this, {ScheduledFaultKind::kStopWorker})) return false;
  // An interrupted worker says "done" to a ps that may have forgotten it, if the ps had no model when it died.
  if (Has(*this, {ScheduledFaultKind::kStopWorker}) &&
      Has(*this, {ScheduledFaultKind::kKillPs, ScheduledFaultKind::kKillPsInside}))
    return false;
  return std::all_of(faults.begin(), faults.end(), [](const ScheduledFault& fault) {
    switch (fault.kind) {
      case ScheduledFaultKind::kCut:
        return true;
      case ScheduledFaultKind::kStopWorker:
        return true;
      case ScheduledFaultKind::kKillPs:
      case ScheduledFaultKind::kKillPsInside:
        return fault.lasts < absl::Seconds(5) && !fault.forgets;
      case ScheduledFaultKind::kPart:
      case ScheduledFaultKind::kDeafWorker:
      case ScheduledFaultKind::kMuteWorker:
      case ScheduledFaultKind::kHangWorker:
      case ScheduledFaultKind::kPauseWorker:
      case ScheduledFaultKind::kPausePs:
        return fault.lasts < absl::Seconds(5);
      default:
        return false;
    }
  });
}

std::string Schedule::ToString() const {
  std::string text = absl::StrCat(
      "seed ", seed, ": ", num_ps, " ps, ", num_workers, " workers, ", Shown(*this), ", until step ", last_step, ", ",
      save_steps > 0 ? absl::StrCat("saves every ", save_steps, " steps", ps_see_disk ? "" : " through the chief")
                     : "no checkpoints",
      ", ", rows, " rows in ", shards, " shards, ", restarts, " restarts, minibatches of ",
      absl::FormatDuration(compute), in_parts ? " pushed in parts" : "", ", messages of ",
      absl::FormatDuration(network.longest),
      network.slow_one_in > 0
          ? absl::StrCat(", one in ", network.slow_one_in, " of ", absl::FormatDuration(network.slow))
          : "");
  for (size_t i = 0; i < faults.size(); ++i) absl::StrAppend(&text, "\n  fault ", i, " ", faults[i].ToString());
  return text;
}

Schedule DrawSchedule(uint64_t seed) {
  Draw draw(seed);
  Schedule schedule{.seed = seed};
  schedule.num_ps = static_cast<int>(draw.Between(1, 3));
  schedule.num_workers = static_cast<int>(draw.Between(1, 4));
  schedule.last_step = draw.Between(5, 40);
  schedule.save_steps = draw.OneIn(4) ? 0 : draw.Between(2, 15);
  schedule.ps_see_disk = !draw.OneIn(4);
  schedule.rows = draw.OneIn(10) ? 600 : draw.Between(1, 6);
  schedule.shards = draw.Between(1, std::min<int64_t>(schedule.rows, schedule.num_ps));
  schedule.restarts = static_cast<int>(draw.Between(0, 2));
  schedule.compute = draw.OneIn(4) ? absl::Seconds(1) : absl::Milliseconds(20);
  schedule.network.longest = draw.OneIn(4) ? absl::Milliseconds(100) : absl::Milliseconds(2);
  schedule.network.slow_one_in = draw.OneIn(3) ? 50 : 0;
  // Roughly as long as the work: later faults would have no effect.
  const absl::Duration during =
      absl::Seconds(2) + schedule.last_step * (schedule.compute + 4 * schedule.network.longest) / 2;
  const int64_t faults = draw.OneIn(10) ? 0 : draw.Between(1, 8);
  const bool ps_may_forget = draw.OneIn(3);
  for (int64_t i = 0; i < faults; ++i) schedule.faults.push_back(DrawFault(draw, schedule, during, ps_may_forget));
  DrawHangs(schedule, during);
  DrawWork(schedule);
  schedule.in_parts = schedule.work == ScheduledWork::kAsynchronous && HashNumbers(seed, 0, 1) % 2 == 0;
  return schedule;
}

Schedule ScheduleReduction::Apply(Schedule schedule) const {
  if (faults) {
    std::vector<ScheduledFault> kept;
    for (const int fault : *faults)
      if (fault >= 0 && fault < static_cast<int>(schedule.faults.size())) kept.push_back(schedule.faults[fault]);
    schedule.faults = std::move(kept);
  }
  if (num_ps) schedule.num_ps = *num_ps;
  if (num_workers) schedule.num_workers = *num_workers;
  if (last_step) schedule.last_step = *last_step;
  schedule.shards = std::min<int64_t>(schedule.shards, schedule.num_ps);
  schedule.replicas = std::min(schedule.replicas, schedule.num_workers);
  std::erase_if(schedule.faults, [&](const ScheduledFault& fault) {
    return fault.worker >= schedule.num_workers || fault.ps >= schedule.num_ps;
  });
  return schedule;
}

std::string ScheduleReduction::ToFlags() const {
  std::string flags;
  if (num_ps) absl::StrAppend(&flags, " --ps ", *num_ps);
  if (num_workers) absl::StrAppend(&flags, " --workers ", *num_workers);
  if (last_step) absl::StrAppend(&flags, " --steps ", *last_step);
  if (faults) absl::StrAppend(&flags, " --faults ", faults->empty() ? "none" : absl::StrJoin(*faults, ","));
  return flags;
}

}  // namespace muster
