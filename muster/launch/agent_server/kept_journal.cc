#include "muster/launch/agent_server/kept_journal.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/launch/agent/launch_entry.h"
#include "muster/transport/messages/codec.h"

namespace muster {
namespace {

constexpr char kSupervisor[] = "supervisor";
constexpr char kTakenIn[] = "taken in";
constexpr char kStopping[] = "stopping";
constexpr char kOpen[] = "open ";

struct SupervisorValue {
  uint64_t number = 0;
  std::string id;
  using Fields = FieldList<Field<1, &SupervisorValue::number>, Field<2, &SupervisorValue::id>>;
};

struct OpenValue {
  CommandId command;
  uint32_t kind = 0;
  TaskId task;
  std::string body;
  using Fields = FieldList<Field<1, &OpenValue::command>, Field<2, &OpenValue::kind>, Field<3, &OpenValue::task>,
                           Field<4, &OpenValue::body>>;
};

std::string NameOf(const CommandId& command) { return absl::StrCat(kOpen, command.ToString()); }

}  // namespace

AgentRecord KeptJournal::Read(const std::map<std::string, KeptThing>& kept) {
  AgentRecord record;
  for (const auto& [name, thing] : kept) {
    if (name == kSupervisor) {
      SupervisorValue supervisor;
      if (!Decode(thing.value, supervisor).ok()) continue;
      record.supervisor = supervisor.number;
      record.supervisor_id = supervisor.id;
    } else if (name == kTakenIn) {
      (void)absl::SimpleAtoi(thing.value, &record.taken_in);
    } else if (name == kStopping) {
      record.stopping = true;
    } else if (absl::StartsWith(name, kOpen)) {
      OpenValue open;
      if (!Decode(thing.value, open).ok()) continue;
      record.open.push_back(
          {.command = open.command, .kind = static_cast<EntryKind>(open.kind), .task = open.task, .body = open.body});
    }
  }
  std::sort(record.open.begin(), record.open.end(),
            [](const OpenCommand& a, const OpenCommand& b) { return a.command < b.command; });
  return record;
}

void KeptJournal::SetSupervisor(uint64_t number, const std::string& id) {
  options_.keep({{kSupervisor, Encode(SupervisorValue{.number = number, .id = id})}, {kTakenIn, "0"}});
}

void KeptJournal::TakeIn(const OpenCommand& command) {
  const OpenValue open{.command = command.command,
                       .kind = static_cast<uint32_t>(command.kind),
                       .task = command.task,
                       .body = command.body};
  ValueChanges changes = {{NameOf(command.command), Encode(open)}, {kTakenIn, absl::StrCat(command.command.number)}};
  if (command.kind == EntryKind::kStop) changes.emplace_back(kStopping, "yes");
  options_.keep(changes);
}

void KeptJournal::Close(const CommandId& command) { options_.keep({{NameOf(command), std::nullopt}}); }

}  // namespace muster
