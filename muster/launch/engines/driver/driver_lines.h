// What a supervisor and the driver of its job say to each other over the driver's Unix socket: JSON objects, one a line
// (docs/ray_engine.md has all of them). The driver is a program in the language of another system, which starts agents
// there: on the nodes of Ray, say. Pure functions, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

// A longer line isn't one of the driver's.
inline constexpr size_t kMostDriverLine = 64 << 10;

// An agent that the driver shall start.
struct DriverStart {
  std::string host;                    // one of those that the driver has named
  uint64_t number = 0;                 // of this start, from 1: the driver's lines about it have it
  std::vector<std::string> arguments;  // of muster; none is secret
  std::string rendezvous;              // the text of the file that the agent gets
};
std::string LineOf(const DriverStart& start);
// Replaces the text of that file on all hosts with an agent.
std::string RendezvousLine(const std::string& rendezvous);
// Ends one start, or all of them: gently, or at once.
std::string EndStartLine(uint64_t number);
std::string EndAllLine(bool at_once);

// The number under which the driver says that none of its agents is left, after EndAllLine.
inline constexpr uint64_t kAllStarts = 0;

// What the driver says about a start.
struct DriverNews {
  enum class Kind {
    kLine,   // the agent has written this line
    kWaits,  // it isn't started yet: "waits for …"
    kEnded,  // it has ended, or wasn't started, for this reason
  };
  Kind kind = Kind::kLine;
  uint64_t number = 0;
  std::string text;       // on one line
  bool for_ever = false;  // kEnded: the job can have no other agent any more

  bool operator==(const DriverNews&) const = default;
};
// InvalidArgument: it isn't a line of the driver's.
absl::StatusOr<DriverNews> ParseDriverNews(std::string_view line);

}  // namespace muster
