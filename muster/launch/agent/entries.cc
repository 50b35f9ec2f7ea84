#include "muster/launch/agent/entries.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/transport/messages/codec.h"

namespace muster {
namespace {

absl::Status Invalid(absl::string_view what) { return absl::InvalidArgumentError(what); }

absl::Status CheckTask(const TaskId& task) {
  if (task.index < 0 || task.index > kMaxTaskIndex) return Invalid("the index of a task is out of range");
  return ValidateJobName(task.job);
}

absl::Status CheckCommand(const CommandId& command) {
  return command.supervisor > 0 && command.number > 0 ? absl::OkStatus() : Invalid("a command's id has a zero");
}

absl::Status CheckLength(absl::string_view what, const std::string& text, size_t max) {
  if (text.size() <= max) return absl::OkStatus();
  return Invalid(absl::StrCat(what, " has ", text.size(), " bytes; accepted: up to ", max));
}

// The kernel takes texts to their first zero byte, so one in a path or an argument would be cut without a word.
absl::Status CheckText(absl::string_view what, const std::string& text) {
  return text.find('\0') == std::string::npos ? absl::OkStatus() : Invalid(absl::StrCat(what, " has a zero byte"));
}

absl::Status CheckId(absl::string_view whose, const std::string& id) {
  return id.size() == kIdBytes ? absl::OkStatus() : Invalid(absl::StrCat(whose, " id has another length"));
}

absl::Status CheckPath(absl::string_view what, const std::string& path) {
  if (path.empty() || path[0] != '/') return Invalid(absl::StrCat(what, " isn't absolute"));
  return CheckText(what, path);
}

absl::Status Check(const AttachEntry& attach) {
  if (attach.supervisor == 0) return Invalid("a supervisor's number is 0");
  RETURN_IF_ERROR(CheckLength("a job's name", attach.job, 256));
  if (!attach.agent_id.empty()) RETURN_IF_ERROR(CheckId("an agent's", attach.agent_id));
  return CheckId("a supervisor's", attach.supervisor_id);
}

absl::Status Check(const HeldLaunch& held) {
  if (held.pid < 0) return Invalid("a process id is negative");
  RETURN_IF_ERROR(CheckCommand(held.launch));
  return CheckTask(held.task);
}

absl::Status Check(const AttachedEntry& attached) {
  if (attached.life == 0) return Invalid("an agent's life is 0");
  if (attached.next_event == 0) return Invalid("an event's number is 0");
  for (const HeldLaunch& held : attached.launches) RETURN_IF_ERROR(Check(held));
  return CheckId("an agent's", attached.agent_id);
}

absl::Status Check(const ReserveEntry& reserve) {
  if (reserve.ports.empty() || reserve.ports.size() > kMaxPorts)
    return Invalid(absl::StrCat("a task can't reserve ", reserve.ports.size(), " ports; accepted: 1 to ", kMaxPorts));
  if (reserve.without.size() > kMaxPorts) return Invalid("too many ports that the task shall not have");
  for (const std::vector<uint32_t>& ports : {reserve.ports, reserve.without, {reserve.last_port}})
    for (const uint32_t port : ports)
      if (port > std::numeric_limits<uint16_t>::max()) return Invalid("a port is beyond 65535");
  if (reserve.first_port > reserve.last_port || (reserve.first_port == 0) != (reserve.last_port == 0))
    return Invalid("the ports to choose from have no first or no last");
  // With a port behind it, it goes into ReservedEntry.
  RETURN_IF_ERROR(CheckLength("the address of a host", reserve.address, 255));
  RETURN_IF_ERROR(CheckText("the address of a host", reserve.address));
  return CheckTask(reserve.task);
}

absl::Status Check(const ReservedEntry& reserved) {
  if (reserved.addresses.size() > kMaxPorts) return Invalid("too many reserved addresses");
  for (const std::string& address : reserved.addresses) {
    RETURN_IF_ERROR(CheckLength("an address", address, 300));
    RETURN_IF_ERROR(CheckText("an address", address));
  }
  return CheckCommand(reserved.command);
}

absl::Status CheckLimits(const LaunchEntry& launch) {
  if (!std::isfinite(launch.cpus) || launch.cpus < 0) return Invalid("a limit of processors isn't a number above 0");
  if (launch.mem_bytes < 0) return Invalid("a limit of memory is negative");
  for (const ProcessMount& mount : launch.mounts) {
    RETURN_IF_ERROR(CheckPath("the host's side of a mount", mount.host));
    RETURN_IF_ERROR(CheckPath("a mount", mount.path));
  }
  return absl::OkStatus();
}

absl::Status Check(const LaunchEntry& launch) {
  RETURN_IF_ERROR(CheckTask(launch.task));
  if (launch.arguments.empty() || launch.arguments[0].empty()) return Invalid("a process has no program");
  for (const std::string& argument : launch.arguments) RETURN_IF_ERROR(CheckText("an argument", argument));
  for (const auto& [name, value] : launch.environment) {
    if (name.empty() || name.find('=') != std::string::npos)
      return Invalid("the name of a variable is empty or has a '='");
    RETURN_IF_ERROR(CheckText("the name of a variable", name));
    RETURN_IF_ERROR(CheckText("the value of a variable", value));
  }
  RETURN_IF_ERROR(CheckText("an address", launch.address));
  RETURN_IF_ERROR(CheckText("a node's name", launch.node));
  if (!launch.directory.empty()) RETURN_IF_ERROR(CheckPath("a working directory", launch.directory));
  return CheckLimits(launch);
}

absl::Status Check(const StartedEntry& started) {
  if (started.pid < 0) return Invalid("a process id is negative");
  RETURN_IF_ERROR(CheckCommand(started.command));
  return CheckTask(started.task);
}

absl::Status Check(const FailedEntry& failed) {
  if (failed.code < 1 || failed.code > 16) return Invalid("an error code that doesn't exist");
  RETURN_IF_ERROR(CheckTask(failed.task));
  return CheckCommand(failed.command);
}

absl::Status Check(const ExitedEntry& exited) {
  if (exited.status.code < 0 || exited.status.code > 255 || exited.status.signal < 0 || exited.status.signal > 127 ||
      exited.status.over_memory < 0)
    return Invalid("no process ends with such a status");
  RETURN_IF_ERROR(CheckCommand(exited.launch));
  return CheckTask(exited.task);
}

absl::Status Check(const OutputEntry& output) {
  if (output.bytes.empty()) return Invalid("output without bytes");
  if (output.position > ~uint64_t{0} - output.bytes.size()) return Invalid("an output position that can't be");
  RETURN_IF_ERROR(CheckLength("output", output.bytes, kMaxOutputBytes));
  return CheckCommand(output.launch);
}

absl::Status Check(const UsageEntry& usage) {
  for (const LaunchUsage& launch : usage.launches) {
    RETURN_IF_ERROR(CheckCommand(launch.launch));
    if (std::min({launch.cpu_micros, launch.resident_bytes, launch.gpu_bytes, launch.gpus, launch.gpu_total_bytes,
                  launch.gpu_permille}) < 0)
      return Invalid("a usage is negative");
    if (launch.gpus > kMaxGpus) return Invalid(absl::StrCat("a task has more than ", kMaxGpus, " GPUs"));
  }
  return absl::OkStatus();
}

absl::Status Check(const InputEntry& input) {
  RETURN_IF_ERROR(CheckLength("input", input.bytes, kMaxInputBytes));
  return CheckCommand(input.launch);
}

absl::Status Check(const RefusedEntry&) { return absl::OkStatus(); }
absl::Status Check(const StopEntry&) { return absl::OkStatus(); }
absl::Status Check(const HostsEntry&) { return absl::OkStatus(); }
absl::Status Check(const EndEntry& end) { return CheckCommand(end.launch); }
absl::Status Check(const StoppedEntry& stopped) { return CheckCommand(stopped.command); }
absl::Status Check(const NoteEntry& note) { return CheckLength("a note", note.line, kMaxNoteBytes); }

}  // namespace

void LaunchUsage::SetGpus(const GpusInUse& in_use) {
  gpus = in_use.count;
  gpu_bytes = in_use.mem_bytes.value_or(0);
  gpu_total_bytes = in_use.mem_total.value_or(0);
  gpu_permille = std::llround(in_use.percent.value_or(0) * 10);
  gpu_permille_known = in_use.percent.has_value();
}

GpusInUse LaunchUsage::InUse() const {
  GpusInUse in_use{.count = static_cast<int>(gpus)};
  if (gpus == 0) return in_use;
  if (gpu_permille_known) in_use.percent = static_cast<double>(gpu_permille) / 10;
  if (gpu_total_bytes > 0) {
    in_use.mem_bytes = gpu_bytes;
    in_use.mem_total = gpu_total_bytes;
  }
  return in_use;
}

FailedEntry FailedEntry::Of(const CommandId& command, const TaskId& task, const absl::Status& status) {
  const auto code = static_cast<uint32_t>(status.raw_code());
  return {.command = command,
          .task = task,
          .code = code >= 1 && code <= 16 ? code : static_cast<uint32_t>(absl::StatusCode::kUnknown),
          .message = std::string(status.message().substr(0, 4096))};
}

absl::Status FailedEntry::ToStatus() const { return {static_cast<absl::StatusCode>(code), message}; }

template <typename Entry>
absl::StatusOr<std::string> EncodeEntry(const Entry& entry) {
  RETURN_IF_ERROR(Check(entry));
  std::string bytes = Encode(entry);
  if (bytes.size() <= kMaxEntryBytes) return bytes;
  return absl::InvalidArgumentError(
      absl::StrCat("it takes ", bytes.size(), " bytes to send; accepted: up to ", kMaxEntryBytes));
}

template <typename Entry>
absl::StatusOr<Entry> DecodeEntry(const std::string& bytes) {
  RETURN_IF_ERROR(CheckLength("an entry", bytes, kMaxEntryBytes));
  Entry entry;
  RETURN_IF_ERROR(Decode(bytes, entry));
  RETURN_IF_ERROR(Check(entry));
  return entry;
}

#define MUSTER_ENTRY(Entry)                                             \
  template absl::StatusOr<std::string> EncodeEntry(const Entry& entry); \
  template absl::StatusOr<Entry> DecodeEntry(const std::string& bytes);
MUSTER_ENTRY(AttachEntry)
MUSTER_ENTRY(AttachedEntry)
MUSTER_ENTRY(RefusedEntry)
MUSTER_ENTRY(ReserveEntry)
MUSTER_ENTRY(ReservedEntry)
MUSTER_ENTRY(LaunchEntry)
MUSTER_ENTRY(StartedEntry)
MUSTER_ENTRY(FailedEntry)
MUSTER_ENTRY(EndEntry)
MUSTER_ENTRY(ExitedEntry)
MUSTER_ENTRY(StopEntry)
MUSTER_ENTRY(StoppedEntry)
MUSTER_ENTRY(HostsEntry)
MUSTER_ENTRY(OutputEntry)
MUSTER_ENTRY(UsageEntry)
MUSTER_ENTRY(NoteEntry)
MUSTER_ENTRY(InputEntry)
#undef MUSTER_ENTRY

}  // namespace muster
