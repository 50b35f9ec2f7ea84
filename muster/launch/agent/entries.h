// What a supervisor and an agent say to each other (docs/agents.md, "Numbers"), as bytes and as structs. Everything
// that is decoded here comes from outside and is checked: names, counts, sizes. A sender checks in the same way, so
// that it sends nothing that its receiver must refuse. Plain values and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/cluster/task_id.h"
#include "muster/launch/agent/entry_kind.h"
#include "muster/launch/agent/launch_entry.h"
#include "muster/launch/backends/backend.h"
#include "muster/launch/task/gpus_in_use.h"
#include "muster/transport/messages/fields.h"

namespace muster {

inline constexpr size_t kMaxEntryBytes = size_t{256} << 10;
inline constexpr size_t kMaxOutputBytes = size_t{64} << 10;  // in one entry
inline constexpr size_t kMaxInputBytes = size_t{64} << 10;   // likewise
inline constexpr size_t kMaxNoteBytes = 1024;
inline constexpr size_t kMaxPorts = 64;    // of one task
inline constexpr int64_t kMaxGpus = 1024;  // likewise
inline constexpr size_t kIdBytes = 16;     // of an agent's and of a supervisor's random id

template <>
inline constexpr EnumValues kAcceptedValues<OutputStream> = {2, "unknown output stream; accepted: 0 stdout, 1 stderr"};
template <>
inline constexpr EnumValues kAcceptedValues<EndMode> = {2, "unknown way to end; accepted: 0 gently, 1 at once"};
template <>
inline constexpr EnumValues kAcceptedValues<KilledFrom> = {
    3, "unknown cause of a SIGKILL; accepted: 0 unknown, 1 outside, 2 out of memory"};
template <>
inline constexpr auto kFieldsOf<ExitStatus> =
    FieldList<Field<1, &ExitStatus::code>, Field<2, &ExitStatus::signal>, Field<3, &ExitStatus::over_memory>,
              Field<4, &ExitStatus::killed_from>, Field<5, &ExitStatus::at_signal>>();

// The first frame of a stream, from the supervisor.
struct AttachEntry {
  static constexpr EntryKind kKind = EntryKind::kAttach;
  std::string job;
  uint64_t supervisor = 0;
  std::string supervisor_id;  // kIdBytes
  std::string agent_id;       // of the agent, as last heard; empty: never
  uint64_t life = 0;          // likewise; 0: never
  uint64_t seen = 0;          // the highest event of that life that was taken in
  using Fields =
      FieldList<Field<1, &AttachEntry::job>, Field<2, &AttachEntry::supervisor>, Field<3, &AttachEntry::supervisor_id>,
                Field<4, &AttachEntry::life>, Field<5, &AttachEntry::seen>, Field<6, &AttachEntry::agent_id>>;
};

// A launch that has been taken in and whose end, or failure to start, hasn't been acknowledged.
struct HeldLaunch {
  CommandId launch;
  TaskId task;
  int64_t pid = 0;  // 0: it is being started or has ended
  using Fields = FieldList<Field<1, &HeldLaunch::launch>, Field<2, &HeldLaunch::task>, Field<3, &HeldLaunch::pid>>;
};

// The answer to it.
struct AttachedEntry {
  static constexpr EntryKind kKind = EntryKind::kAttached;
  std::string agent_id;  // kIdBytes
  uint64_t life = 0;
  uint64_t taken_in = 0;    // the highest command of this supervisor
  uint64_t next_event = 1;  // the first event that comes: those before have been acknowledged
  std::vector<HeldLaunch> launches;
  using Fields =
      FieldList<Field<1, &AttachedEntry::agent_id>, Field<2, &AttachedEntry::life>, Field<3, &AttachedEntry::taken_in>,
                Field<4, &AttachedEntry::next_event>, Field<5, &AttachedEntry::launches>>;
};

enum class Refusal { kNewerSupervisor = 0, kOtherJob = 1, kEnding = 2 };
template <>
inline constexpr EnumValues kAcceptedValues<Refusal> = {
    3, "unknown reason; accepted: 0 newer supervisor, 1 other job, 2 ending"};

struct RefusedEntry {
  static constexpr EntryKind kKind = EntryKind::kRefused;
  Refusal reason = Refusal::kNewerSupervisor;
  uint64_t supervisor = 0;  // the highest number that the agent has seen
  using Fields = FieldList<Field<1, &RefusedEntry::reason>, Field<2, &RefusedEntry::supervisor>>;
};

struct ReserveEntry {
  static constexpr EntryKind kKind = EntryKind::kReserve;
  TaskId task;
  std::vector<uint32_t> ports;  // numbers, or 0 for any
  std::string address;          // under which the other hosts reach this one; empty: the agent's own choice
  // The only numbers that any port may have; 0: the agent's own choice.
  uint32_t first_port = 0;
  uint32_t last_port = 0;
  // Numbers that another program uses: if the task has one of them, it gets other ports than it has.
  std::vector<uint32_t> without = {};
  using Fields = FieldList<Field<1, &ReserveEntry::task>, Field<2, &ReserveEntry::ports>,
                           Field<3, &ReserveEntry::address>, Field<4, &ReserveEntry::first_port>,
                           Field<5, &ReserveEntry::last_port>, Field<6, &ReserveEntry::without>>;
};

struct ReservedEntry {
  static constexpr EntryKind kKind = EntryKind::kReserved;
  CommandId command;
  std::vector<std::string> addresses;
  using Fields = FieldList<Field<1, &ReservedEntry::command>, Field<2, &ReservedEntry::addresses>>;
};

struct StartedEntry {
  static constexpr EntryKind kKind = EntryKind::kStarted;
  CommandId command;
  TaskId task;
  int64_t pid = 0;  // 0: it has ended meanwhile
  using Fields =
      FieldList<Field<1, &StartedEntry::command>, Field<2, &StartedEntry::task>, Field<3, &StartedEntry::pid>>;
};

struct FailedEntry {
  static constexpr EntryKind kKind = EntryKind::kFailed;
  CommandId command;
  TaskId task;
  uint32_t code = 2;  // absl::StatusCode, not OK
  std::string message;

  static FailedEntry Of(const CommandId& command, const TaskId& task, const absl::Status& status);
  absl::Status ToStatus() const;

  using Fields = FieldList<Field<1, &FailedEntry::command>, Field<2, &FailedEntry::task>, Field<3, &FailedEntry::code>,
                           Field<4, &FailedEntry::message>>;
};

struct EndEntry {
  static constexpr EntryKind kKind = EntryKind::kEnd;
  CommandId launch;
  EndMode mode = EndMode::kGently;
  using Fields = FieldList<Field<1, &EndEntry::launch>, Field<2, &EndEntry::mode>>;
};

struct StopEntry {
  static constexpr EntryKind kKind = EntryKind::kStop;
  using Fields = FieldList<>;
};

struct StoppedEntry {
  static constexpr EntryKind kKind = EntryKind::kStopped;
  CommandId command;
  uint64_t strays = 0;
  using Fields = FieldList<Field<1, &StoppedEntry::command>, Field<2, &StoppedEntry::strays>>;
};

struct HostsEntry {
  static constexpr EntryKind kKind = EntryKind::kHosts;
  std::string file;
  using Fields = FieldList<Field<1, &HostsEntry::file>>;
};

// Bytes for the stdin of a launch that takes input; none: its end.
struct InputEntry {
  static constexpr EntryKind kKind = EntryKind::kInput;
  CommandId launch;
  std::string bytes;
  using Fields = FieldList<Field<1, &InputEntry::launch>, Field<2, &InputEntry::bytes>>;
};

struct OutputEntry {
  static constexpr EntryKind kKind = EntryKind::kOutput;
  CommandId launch;
  OutputStream stream = OutputStream::kStdout;
  uint64_t position = 0;  // bytes of this stream of this launch before these
  std::string bytes;
  using Fields = FieldList<Field<1, &OutputEntry::launch>, Field<2, &OutputEntry::stream>,
                           Field<3, &OutputEntry::position>, Field<4, &OutputEntry::bytes>>;
};

// What a task has written to its two pipes.
struct OutputEnds {
  uint64_t out = 0;     // bytes of stdout
  uint64_t err = 0;     // bytes of stderr
  bool unsure = false;  // an agent died while it read: up to kMaxOutputBytes more may be missing

  uint64_t of(OutputStream stream) const { return stream == OutputStream::kStdout ? out : err; }
  uint64_t& of(OutputStream stream) { return stream == OutputStream::kStdout ? out : err; }
  bool operator==(const OutputEnds&) const = default;

  using Fields = FieldList<Field<1, &OutputEnds::out>, Field<2, &OutputEnds::err>, Field<3, &OutputEnds::unsure>>;
};

struct ExitedEntry {
  static constexpr EntryKind kKind = EntryKind::kExited;
  CommandId launch;
  TaskId task;
  ExitStatus status;
  OutputEnds ends;
  using Fields = FieldList<Field<1, &ExitedEntry::launch>, Field<2, &ExitedEntry::task>, Field<3, &ExitedEntry::status>,
                           Field<4, &ExitedEntry::ends>>;
};

struct LaunchUsage {
  CommandId launch;
  int64_t cpu_micros = 0;
  int64_t resident_bytes = 0;
  int64_t gpu_bytes = 0;
  int64_t gpus = 0;             // found ones; without any, the others of GPUs mean nothing
  int64_t gpu_total_bytes = 0;  // 0: unknown, and gpu_bytes, too
  int64_t gpu_permille = 0;     // of their time, on the average
  bool gpu_permille_known = false;
  using Fields = FieldList<Field<1, &LaunchUsage::launch>, Field<2, &LaunchUsage::cpu_micros>,
                           Field<3, &LaunchUsage::resident_bytes>, Field<4, &LaunchUsage::gpu_bytes>,
                           Field<5, &LaunchUsage::gpus>, Field<6, &LaunchUsage::gpu_total_bytes>,
                           Field<7, &LaunchUsage::gpu_permille>, Field<8, &LaunchUsage::gpu_permille_known>>;

  void SetGpus(const GpusInUse& in_use);
  GpusInUse InUse() const;
};

struct UsageEntry {
  static constexpr EntryKind kKind = EntryKind::kUsage;
  std::vector<LaunchUsage> launches;
  using Fields = FieldList<Field<1, &UsageEntry::launches>>;
};

struct NoteEntry {
  static constexpr EntryKind kKind = EntryKind::kNote;
  std::string line;
  using Fields = FieldList<Field<1, &NoteEntry::line>>;
};

// InvalidArgument says what is wrong. An entry whose bytes are more than kMaxEntryBytes is refused, too.
template <typename Entry>
absl::StatusOr<std::string> EncodeEntry(const Entry& entry);
template <typename Entry>
absl::StatusOr<Entry> DecodeEntry(const std::string& bytes);

// Calls visit.template operator()<Entry>() for each kind of entry.
template <typename Visit>
void ForEachEntry(const Visit& visit) {
  [&]<typename... Entry>(FieldList<Entry...>) {
    (visit.template operator()<Entry>(), ...);
  }(FieldList<AttachEntry, AttachedEntry, RefusedEntry, ReserveEntry, ReservedEntry, LaunchEntry, StartedEntry,
              FailedEntry, EndEntry, ExitedEntry, StopEntry, StoppedEntry, HostsEntry, OutputEntry, UsageEntry,
              NoteEntry, InputEntry>());
}

}  // namespace muster
