#include "muster/launch/agent/supervisor_link.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "muster/base/check.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

bool HasAnswer(EntryKind kind) {
  return kind == EntryKind::kReserve || kind == EntryKind::kLaunch || kind == EntryKind::kStop;
}

}  // namespace

SupervisorLink::SupervisorLink(SupervisorLinkOptions options, AgentRecord record, AgentJournal& journal,
                               CommandExecutor& executor)
    : options_(std::move(options)),
      journal_(journal),
      executor_(executor),
      record_(std::move(record)),
      sender_(options_.limits.in_flight_bytes) {
  MUSTER_CHECK(record_.agent_id.size() == kIdBytes && record_.life > 0 && record_.answered > absl::InfinitePast());
}

void SupervisorLink::Resume() {
  const std::vector<OpenCommand> open = record_.open;
  const std::vector<HeldLaunch> launches = executor_.Launches();
  for (const OpenCommand& command : open) {
    if (command.kind == EntryKind::kInput) {
      Close(command.command);  // the pipe has died with the agent that may have written it
      continue;
    }
    if (command.kind != EntryKind::kLaunch) {
      MUSTER_CHECK(Execute(command).ok());
      continue;
    }
    const auto held = std::find_if(launches.begin(), launches.end(),
                                   [&](const HeldLaunch& launch) { return launch.launch == command.command; });
    if (held == launches.end()) {
      SendFailed(command.command, command.task, absl::AbortedError("the agent died before it had started the task"));
    } else {
      SendStarted(command.command, held->task, held->pid);
    }
  }
}

SupervisorLink::StreamId SupervisorLink::OnStream(absl::Time now, const std::optional<FrameMac>& mac) {
  while (streams_.size() - (attached_ ? 1 : 0) >= kWaiting)
    for (const auto& [id, stream] : streams_)
      if (id != attached_) {
        OnStreamEnd(StreamId{id});
        break;
      }
  const StreamId id{++last_stream_};
  streams_.try_emplace(id, FrameDirection::kToSupervisor, now, mac);
  return id;
}

void SupervisorLink::OnStreamEnd(StreamId stream) {
  streams_.erase(stream);
  replies_.erase(stream);
  if (attached_ == stream) attached_.reset();
}

bool SupervisorLink::Wants(StreamId stream) const { return streams_.contains(stream); }

absl::Status SupervisorLink::OnBytes(absl::Time now, StreamId id, ByteSpan bytes) {
  const auto added = streams_.find(id);
  if (added == streams_.end()) return absl::OkStatus();
  added->second.Add(bytes);
  while (true) {
    const auto stream = streams_.find(id);
    if (stream == streams_.end()) return absl::OkStatus();
    absl::StatusOr<std::optional<AgentFrame>> frame = stream->second.Next();
    absl::Status status = frame.status();
    if (status.ok() && !frame->has_value()) return status;
    if (status.ok()) status = TakeFrame(now, id, **frame);
    if (status.ok()) continue;
    OnStreamEnd(id);
    return status;
  }
}

absl::Status SupervisorLink::TakeFrame(absl::Time now, StreamId id, AgentFrame& frame) {
  if (attached_ != id) {
    if (frame.kind != EntryKind::kAttach || replies_.contains(id))
      return absl::InvalidArgumentError("a supervisor hasn't attached first");
    ASSIGN_OR_RETURN(const AttachEntry attach, DecodeEntry<AttachEntry>(frame.body));
    EndIfGraceIsOver(now, id);  // the supervisor shall hear that
    return TakeAttach(now, id, attach);
  }
  if (frame.kind == EntryKind::kAttach) return absl::InvalidArgumentError("a supervisor attaches a second time");
  RETURN_IF_ERROR(Acknowledge(frame.envelope.acknowledged));
  RETURN_IF_ERROR(sender_.NoteReceived(frame.envelope.received));
  Renew(Has(PlantedAgentBug::kRenewByAnyFrame) ? now : streams_.at(id).answered());
  if (EndIfGraceIsOver(now)) return absl::OkStatus();
  if (!IsNumbered(frame.kind) || frame.envelope.entry <= record_.taken_in) return absl::OkStatus();
  if (frame.envelope.entry > record_.taken_in + 1)
    return absl::InvalidArgumentError(
        absl::StrCat("command ", frame.envelope.entry, " comes after command ", record_.taken_in));
  return TakeCommand(frame.kind, frame.body);
}

std::optional<Refusal> SupervisorLink::RefusalOf(const AttachEntry& attach) const {
  if (attach.job != options_.job) return Refusal::kOtherJob;
  if (ending()) return Refusal::kEnding;
  const bool replaced = attach.supervisor < record_.supervisor ||
                        (attach.supervisor == record_.supervisor && attach.supervisor_id != record_.supervisor_id);
  if (replaced && !Has(PlantedAgentBug::kAcceptLowerNumber)) return Refusal::kNewerSupervisor;
  return std::nullopt;
}

absl::Status SupervisorLink::TakeAttach(absl::Time now, StreamId id, const AttachEntry& attach) {
  if (const std::optional<Refusal> reason = RefusalOf(attach)) {
    const auto refused = EncodeEntry(RefusedEntry{.reason = *reason, .supervisor = record_.supervisor});
    replies_[id] = streams_.at(id).Make(now, {}, EntryKind::kRefused, 0, *refused);
    streams_.erase(id);
    return absl::OkStatus();
  }
  const bool knows_this_life = attach.agent_id == record_.agent_id && attach.life == record_.life;
  if (knows_this_life && attach.seen > sender_.acknowledged()) RETURN_IF_ERROR(Acknowledge(attach.seen));
  if (attached_) OnStreamEnd(StreamId{*attached_});
  if (attach.supervisor != record_.supervisor || attach.supervisor_id != record_.supervisor_id) {
    if (record_.supervisor == 0) BeginGrace(id);
    record_.supervisor = attach.supervisor;
    record_.supervisor_id = attach.supervisor_id;
    record_.taken_in = 0;
    journal_.SetSupervisor(attach.supervisor, attach.supervisor_id);
    executor_.DropReservations();
  }
  attached_ = id;
  sender_.Rewind();
  const auto attached = EncodeEntry(AttachedEntry{.agent_id = record_.agent_id,
                                                  .life = record_.life,
                                                  .taken_in = record_.taken_in,
                                                  .next_event = sender_.acknowledged() + 1,
                                                  .launches = HeldLaunches()});
  MUSTER_CHECK(attached.ok());
  replies_[id] = streams_.at(id).Make(now, {.acknowledged = record_.taken_in}, EntryKind::kAttached, 0, *attached);
  return absl::OkStatus();
}

std::vector<HeldLaunch> SupervisorLink::HeldLaunches() const {
  std::vector<HeldLaunch> held = executor_.Launches();
  std::set<CommandId> started;
  for (const HeldLaunch& launch : held) started.insert(launch.launch);
  for (const OpenCommand& open : record_.open)
    if (open.kind == EntryKind::kLaunch && !started.contains(open.command))
      held.push_back({.launch = open.command, .task = open.task});
  return held;
}

absl::Status SupervisorLink::TakeCommand(EntryKind kind, const std::string& body) {
  if (record_.open.size() >= options_.limits.open_commands)
    return absl::ResourceExhaustedError("there are too many commands that aren't answered");
  // A command that doesn't decode isn't taken in: an honest supervisor has checked it in the same way.
  OpenCommand command{.command = {record_.supervisor, record_.taken_in + 1}, .kind = kind, .task = {}, .body = body};
  absl::StatusOr<LaunchEntry> process = absl::UnknownError("not a launch");
  absl::StatusOr<InputEntry> input = absl::UnknownError("not an input");
  absl::Status decodes = absl::InvalidArgumentError("not a command");
  if (kind == EntryKind::kReserve) {
    const auto reserve = DecodeEntry<ReserveEntry>(body);
    decodes = reserve.status();
    if (reserve.ok()) command.task = reserve->task;
  } else if (kind == EntryKind::kLaunch) {
    process = DecodeEntry<LaunchEntry>(body);
    decodes = process.status();
    if (process.ok()) command.task = process->task;
    command.body.clear();
  } else if (kind == EntryKind::kEnd) {
    decodes = DecodeEntry<EndEntry>(body).status();
  } else if (kind == EntryKind::kHosts) {
    decodes = DecodeEntry<HostsEntry>(body).status();
  } else if (kind == EntryKind::kInput) {
    input = DecodeEntry<InputEntry>(body);
    decodes = input.status();
    command.body.clear();
  } else if (kind == EntryKind::kStop) {
    decodes = absl::OkStatus();
  }
  RETURN_IF_ERROR(decodes);
  const bool stopping = record_.stopping;
  record_.taken_in = command.command.number;
  record_.open.push_back(command);
  record_.stopping |= kind == EntryKind::kStop;
  journal_.TakeIn(command);
  if (kind == EntryKind::kInput) {
    executor_.Input(input->launch, input->bytes);
    Close(CommandId(command.command));
    return absl::OkStatus();
  }
  if (kind != EntryKind::kLaunch) return Execute(command);
  if (stopping) {
    SendFailed(command.command, command.task, absl::FailedPreconditionError("the agent was told to stop"));
  } else {
    executor_.Launch(command.command, *process);
  }
  return absl::OkStatus();
}

absl::Status SupervisorLink::Execute(const OpenCommand& command) {
  switch (command.kind) {
    case EntryKind::kReserve: {
      ASSIGN_OR_RETURN(const ReserveEntry reserve, DecodeEntry<ReserveEntry>(command.body));
      executor_.Reserve(command.command, reserve);
      break;
    }
    case EntryKind::kEnd: {
      ASSIGN_OR_RETURN(const EndEntry end, DecodeEntry<EndEntry>(command.body));
      executor_.End(end.launch, end.mode);
      break;
    }
    case EntryKind::kHosts: {
      ASSIGN_OR_RETURN(const HostsEntry hosts, DecodeEntry<HostsEntry>(command.body));
      executor_.WriteHosts(hosts.file);
      break;
    }
    default:
      executor_.Stop();
  }
  if (!HasAnswer(command.kind)) Close(CommandId(command.command));
  return absl::OkStatus();
}

void SupervisorLink::Close(const CommandId& command) {
  std::erase_if(record_.open, [&](const OpenCommand& open) { return open.command == command; });
  journal_.Close(command);
}

absl::Status SupervisorLink::Acknowledge(uint64_t number) {
  return sender_.Acknowledge(number, [this](const EntrySender::Entry& entry) {
    if (entry.kind == EntryKind::kExited) return executor_.Forget(entry.about);
    if (entry.about.number == 0) return;
    Close(entry.about);
    stopped_ |= entry.kind == EntryKind::kStopped;
  });
}

void SupervisorLink::Renew(absl::Time answered) {
  if (answered <= record_.answered || ending()) return;
  record_.answered = answered;
  journal_.SetAnswered(answered);
}

void SupervisorLink::BeginGrace(StreamId stream) {
  const absl::Time begun = streams_.at(stream).last_made();  // as this end has made no frame of it yet
  if (begun >= record_.answered) return;
  record_.answered = begun;
  journal_.SetAnswered(begun);
}

void SupervisorLink::EndNow(absl::Time now, std::optional<StreamId> kept) {
  if (ending()) return;
  ending_since_ = now;
  const AgentLimits& limits = options_.limits;
  // Another host takes the tasks over at the end that the grace brings, whatever a signal has said.
  kill_at_ = std::min(now + std::max(limits.signalled, limits.ending),
                      std::max(now, record_.answered + limits.grace) + limits.ending);
  std::erase_if(streams_, [&](const auto& stream) { return stream.first != kept; });
  replies_.clear();
  attached_.reset();
  executor_.EndAll(EndMode::kGently);
}

// A process that was stopped for longer finds old commands in its sockets before it looks at the clock; by then the
// tasks that they are about may run elsewhere.
bool SupervisorLink::EndIfGraceIsOver(absl::Time now, std::optional<StreamId> kept) {
  if (ending() || now < record_.answered + options_.limits.grace) return false;
  EndNow(now, kept);
  return true;
}

void SupervisorLink::OnTime(absl::Time now) {
  EndIfGraceIsOver(now);
  if (!ending() || killed_ || now < kill_at_) return;
  killed_ = true;
  executor_.EndAll(EndMode::kAtOnce);
}

absl::Time SupervisorLink::deadline() const {
  if (ending()) return killed_ ? absl::InfiniteFuture() : kill_at_;
  const absl::Time grace = record_.answered + options_.limits.grace;
  return attached_ ? std::min(grace, streams_.at(*attached_).last_made() + options_.limits.silence) : grace;
}

std::string SupervisorLink::NextFrame(absl::Time now, StreamId id) {
  if (const auto reply = replies_.find(id); reply != replies_.end()) {
    std::string frame = std::move(reply->second);
    replies_.erase(reply);
    return frame;
  }
  if (attached_ != id) return "";
  FrameStream& stream = streams_.at(id);
  if (usage_) {
    const std::string usage = *std::exchange(usage_, std::nullopt);
    return stream.Make(now, {.acknowledged = record_.taken_in}, EntryKind::kUsage, 0, usage);
  }
  if (const EntrySender::Entry* entry = sender_.Next())
    return stream.Make(now, {.acknowledged = record_.taken_in}, entry->kind, entry->number, entry->body);
  if (stream.unacknowledged() >= options_.limits.acknowledge_bytes ||
      now >= stream.last_made() + options_.limits.silence)
    return stream.Make(now, {.acknowledged = record_.taken_in});
  return "";
}

template <typename Entry>
void SupervisorLink::Send(const Entry& entry, const CommandId& about) {
  auto body = EncodeEntry(entry);
  MUSTER_CHECK(body.ok());
  sender_.Add(Entry::kKind, *std::move(body), about);
}

void SupervisorLink::SendReserved(const CommandId& command, const std::vector<std::string>& addresses) {
  Send(ReservedEntry{.command = command, .addresses = addresses}, command);
}

void SupervisorLink::SendStarted(const CommandId& launch, const TaskId& task, int64_t pid) {
  Send(StartedEntry{.command = launch, .task = task, .pid = pid}, launch);
}

void SupervisorLink::SendFailed(const CommandId& command, const TaskId& task, const absl::Status& status) {
  Send(FailedEntry::Of(command, task, status), command);
}

void SupervisorLink::SendStopped(uint64_t strays) {
  for (const OpenCommand& open : record_.open)
    if (open.kind == EntryKind::kStop) Send(StoppedEntry{.command = open.command, .strays = strays}, open.command);
}

void SupervisorLink::SendOutput(const CommandId& launch, OutputStream stream, uint64_t position,
                                std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kMaxOutputBytes);
    Send(OutputEntry{.launch = launch, .stream = stream, .position = position, .bytes = std::string(piece)});
    position += piece.size();
    bytes.remove_prefix(piece.size());
  }
}

void SupervisorLink::SendExited(const CommandId& launch, const TaskId& task, const ExitStatus& status,
                                const OutputEnds& ends) {
  Send(ExitedEntry{.launch = launch, .task = task, .status = status, .ends = ends}, launch);
}

void SupervisorLink::SendUsage(const UsageEntry& usage) {
  auto body = EncodeEntry(usage);
  if (body.ok()) usage_ = *std::move(body);
}

void SupervisorLink::SendNote(std::string_view line) {
  if (may_send_output()) Send(NoteEntry{.line = std::string(line.substr(0, kMaxNoteBytes))});
}

bool SupervisorLink::may_send_output() const { return !ending() && sender_.kept_bytes() < options_.limits.kept_bytes; }

}  // namespace muster
