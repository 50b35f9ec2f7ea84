#include "muster/sim/agents/agent_schedule.h"

#include "absl/strings/str_cat.h"
#include "muster/base/split_mix64.h"

namespace muster {
namespace {

constexpr const char* kNames[] = {
    "cut", "part", "mute", "deaf", "kill agent", "pause agent", "kill host", "kill supervisor", "replace supervisor"};

absl::Duration Between(SplitMix64& random, absl::Duration least, absl::Duration most) {
  const int64_t span = absl::ToInt64Milliseconds(most - least);
  return least + absl::Milliseconds(static_cast<int64_t>(random.Below(static_cast<uint64_t>(span) + 1)));
}

AgentFaultKind DrawKind(SplitMix64& random) {
  switch (random.Below(16)) {
    case 0:
      return AgentFaultKind::kPart;
    case 1:
      return AgentFaultKind::kMute;
    case 2:
      return AgentFaultKind::kDeaf;
    case 3:
    case 4:
    case 5:
      return AgentFaultKind::kKillAgent;
    case 6:
      return AgentFaultKind::kPauseAgent;
    case 7:
      return AgentFaultKind::kKillHost;
    case 8:
    case 9:
      return AgentFaultKind::kKillSupervisor;
    case 10:
      return AgentFaultKind::kReplaceSupervisor;
    default:
      return AgentFaultKind::kCut;
  }
}

}  // namespace

std::string AgentFault::ToString() const {
  std::string text = absl::StrCat(kNames[static_cast<int>(kind)], " at ", absl::FormatDuration(at), ", host ", host);
  if (kind == AgentFaultKind::kCut) {
    absl::StrAppend(&text, ", after ", bytes, to_agent ? " bytes to it" : " bytes from it");
  } else if (kind != AgentFaultKind::kKillHost) {
    absl::StrAppend(&text, ", lasts ", absl::FormatDuration(lasts));
  }
  if (kind == AgentFaultKind::kKillAgent || kind == AgentFaultKind::kKillSupervisor)
    absl::StrAppend(&text, ", at point ", passes);
  return text;
}

std::string AgentSchedule::ToString() const {
  std::string text = absl::StrCat("seed ", seed, ": ", hosts, " hosts, ", tasks, " tasks, ", absl::FormatDuration(run));
  for (size_t i = 0; i < faults.size(); ++i) absl::StrAppend(&text, "\n  fault ", i, ": ", faults[i].ToString());
  return text;
}

AgentSchedule DrawAgentSchedule(uint64_t seed) {
  SplitMix64 random(SplitMix64::Mix(seed));
  AgentSchedule schedule{.seed = seed};
  schedule.hosts = 1 + static_cast<int>(random.Below(3));
  schedule.tasks = 1 + static_cast<int>(random.Below(4));
  schedule.run = Between(random, absl::Seconds(10), absl::Seconds(120));
  const uint64_t faults = random.Below(9);
  for (uint64_t i = 0; i < faults; ++i) {
    AgentFault fault{.kind = DrawKind(random)};
    fault.at = Between(random, absl::ZeroDuration(), schedule.run + absl::Seconds(2));
    fault.host = static_cast<int>(random.Below(static_cast<uint64_t>(schedule.hosts)));
    const bool is_long = random.Below(2) == 0;
    fault.lasts = Between(random, absl::Milliseconds(10), is_long ? absl::Seconds(60) : absl::Seconds(4));
    if (fault.kind == AgentFaultKind::kKillSupervisor && random.Below(5) == 0) fault.lasts = absl::InfiniteDuration();
    fault.passes = 1 + random.Below(40);
    fault.bytes = random.Below(random.Below(2) == 0 ? 400 : 40'000);
    fault.to_agent = random.Below(2) == 0;
    schedule.faults.push_back(fault);
  }
  return schedule;
}

}  // namespace muster
