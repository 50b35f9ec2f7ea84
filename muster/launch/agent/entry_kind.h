// The kinds of entries between a supervisor and an agent, and how a command is named (docs/agents.md, "Numbers"). Plain
// values and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "muster/transport/messages/fields.h"

namespace muster {

// The numbers are written to the wire as the method of a frame: never renumber.
enum class EntryKind : uint16_t {
  kNone = 0,  // the frame only acknowledges
  kAttach = 1,
  kAttached = 2,
  kRefused = 3,
  kReserve = 4,
  kReserved = 5,
  kLaunch = 6,
  kStarted = 7,
  kFailed = 8,
  kEnd = 9,
  kExited = 10,
  kStop = 11,
  kStopped = 12,
  kHosts = 13,
  kOutput = 14,
  kUsage = 15,
  kNote = 16,
  kInput = 17,
};
inline constexpr uint16_t kEntryKinds = 18;

// Returns whether entries of the kind have a number: they are kept until they are acknowledged.
bool IsNumbered(EntryKind kind);
// Returns whether a supervisor sends it to an agent. Both send kNone.
bool IsForAgent(EntryKind kind);

// A command: its supervisor's number, and the command's among those of that supervisor. It also names what the command
// has started, so a launch is identified by the command that asked for it.
struct CommandId {
  uint64_t supervisor = 0;
  uint64_t number = 0;

  // Returns "2.17", as in MUSTER_LAUNCH.
  std::string ToString() const;
  auto operator<=>(const CommandId&) const = default;

  using Fields = FieldList<Field<1, &CommandId::supervisor>, Field<2, &CommandId::number>>;
};

}  // namespace muster
