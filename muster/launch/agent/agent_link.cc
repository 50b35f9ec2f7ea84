#include "muster/launch/agent/agent_link.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/status_macros.h"

namespace muster {
AgentLink::AgentLink(AgentLinkOptions options, AgentLinkEvents& events, absl::Time now)
    : options_(std::move(options)),
      events_(events),
      sender_(options_.limits.in_flight_bytes),
      progress_(options_.progress),
      heard_(now),
      number_read_(now) {
  MUSTER_CHECK(options_.supervisor > 0 && options_.supervisor_id.size() == kIdBytes);
}

void AgentLink::OnStream(absl::Time now, const std::optional<FrameMac>& mac) {
  OnStreamEnd();
  if (lost_ || (refused_ && refused_->reason != Refusal::kEnding)) return;
  refused_.reset();  // the next agent may answer
  stream_ = std::make_unique<FrameStream>(FrameDirection::kToAgent, now, mac);
  sender_.Rewind();
  if (Has(PlantedAgentBug::kDropHighest)) sender_.DropNewest();
}

void AgentLink::OnStreamEnd() {
  stream_.reset();
  attach_sent_ = false;
  attached_ = false;
  kept_.clear();  // they come again
  kept_bytes_ = 0;
}

absl::Status AgentLink::OnBytes(absl::Time now, ByteSpan bytes) {
  if (stream_ == nullptr) return absl::OkStatus();
  if (NumberIsOld(now)) {
    OnStreamEnd();
    return absl::OkStatus();
  }
  stream_->Add(bytes);
  while (stream_ != nullptr) {
    absl::StatusOr<std::optional<AgentFrame>> frame = stream_->Next();
    absl::Status status = frame.status();
    if (status.ok() && !frame->has_value()) return status;
    if (status.ok()) status = TakeFrame(now, **frame);
    if (status.ok()) continue;
    OnStreamEnd();
    return status;
  }
  return absl::OkStatus();
}

absl::Status AgentLink::TakeFrame(absl::Time now, AgentFrame& frame) {
  if (!attached_) {
    if (frame.kind == EntryKind::kRefused) {
      ASSIGN_OR_RETURN(refused_, DecodeEntry<RefusedEntry>(frame.body));
      OnStreamEnd();
      return absl::OkStatus();
    }
    if (frame.kind != EntryKind::kAttached)
      return absl::InvalidArgumentError("an agent speaks before it has answered `attach`");
    ASSIGN_OR_RETURN(const AttachedEntry attached, DecodeEntry<AttachedEntry>(frame.body));
    RETURN_IF_ERROR(TakeAttached(attached));
    Heard(now);
    return absl::OkStatus();
  }
  if (frame.kind == EntryKind::kAttached || frame.kind == EntryKind::kRefused)
    return absl::InvalidArgumentError("an agent answers `attach` a second time");
  RETURN_IF_ERROR(sender_.Acknowledge(frame.envelope.acknowledged, [](const EntrySender::Entry&) {}));
  Heard(now);
  if (!IsNumbered(frame.kind))
    return frame.kind == EntryKind::kNone ? absl::OkStatus() : TakeEvent(frame.kind, frame.body);
  return TakeNumbered(frame);
}

absl::Status AgentLink::TakeNumbered(AgentFrame& frame) {
  const uint64_t newest = progress_.seen + kept_.size();
  if (frame.envelope.entry <= newest) return absl::OkStatus();  // sent again
  if (frame.envelope.entry > newest + 1)
    return absl::InvalidArgumentError(absl::StrCat("event ", frame.envelope.entry, " comes after event ", newest));
  if (paused_) return TakeOrKeep(frame);
  RETURN_IF_ERROR(TakeEvent(frame.kind, frame.body));
  progress_.seen = frame.envelope.entry;
  return absl::OkStatus();
}

// What is taken in before older output isn't acknowledged before it, so it may come again on the next stream. It does
// no harm then: an answer finds no command without one, and an end no launch.
absl::Status AgentLink::TakeOrKeep(AgentFrame& frame) {
  Kept kept{.launch = {}, .body = "", .taken = true};
  if (frame.kind == EntryKind::kOutput) {
    ASSIGN_OR_RETURN(const OutputEntry output, DecodeEntry<OutputEntry>(frame.body));
    kept_bytes_ += frame.body.size();
    if (kept_bytes_ > MostKept())
      return absl::InvalidArgumentError("the agent sends more than it may without an acknowledgement");
    kept = {.launch = output.launch, .body = std::move(frame.body), .taken = false};
  } else if (frame.kind == EntryKind::kExited) {
    ASSIGN_OR_RETURN(const ExitedEntry exited, DecodeEntry<ExitedEntry>(frame.body));
    RETURN_IF_ERROR(TakeKept(exited.launch));
  }
  if (kept.taken) RETURN_IF_ERROR(TakeEvent(frame.kind, frame.body));
  kept_.push_back(std::move(kept));
  CountTaken();
  return absl::OkStatus();
}

// The agent reads no more output once it keeps so much, but for the rest of what each ended task has written: its two
// pipes, of which each may hold as much as the kernel lets it.
size_t AgentLink::MostKept() const {
  constexpr size_t kLargestPipe = size_t{1} << 20;  // /proc/sys/fs/pipe-max-size
  return options_.limits.kept_bytes + kMaxEntryBytes + 2 * kLargestPipe * progress_.outputs.size();
}

absl::Status AgentLink::TakeKept(const std::optional<CommandId>& launch) {
  for (Kept& kept : kept_) {
    if (kept.taken || (launch.has_value() && kept.launch != *launch)) continue;
    const std::string body = std::exchange(kept.body, "");
    kept.taken = true;
    kept_bytes_ -= body.size();
    RETURN_IF_ERROR(TakeEvent(EntryKind::kOutput, body));
  }
  CountTaken();
  return absl::OkStatus();
}

void AgentLink::CountTaken() {
  for (; !kept_.empty() && kept_.front().taken; kept_.pop_front()) ++progress_.seen;
}

absl::Status AgentLink::PauseOutput(bool paused) {
  paused_ = paused;
  acknowledge_ |= !paused;
  const absl::Status taken = paused ? absl::OkStatus() : TakeKept(std::nullopt);
  if (!taken.ok()) OnStreamEnd();
  return taken;
}

absl::Status AgentLink::TakeAttached(const AttachedEntry& attached) {
  if (!progress_.agent_id.empty() && attached.agent_id != progress_.agent_id) {
    replaced_ = true;
    return absl::InvalidArgumentError("it is another agent than before");
  }
  if (attached.life < progress_.life) return absl::InvalidArgumentError("it is an earlier life of the agent");
  const bool same_life = attached.life == progress_.life && knows_life_;
  if (same_life && attached.next_event > progress_.seen + 1) return absl::InvalidArgumentError("events are missing");
  std::set<CommandId> held;
  for (const HeldLaunch& launch : attached.launches) held.insert(launch.launch);
  for (const auto& [launch, ends] : progress_.outputs)
    if (!held.contains(launch))
      return absl::InvalidArgumentError(absl::StrCat("the agent knows nothing of launch ", launch.ToString()));
  RETURN_IF_ERROR(sender_.Acknowledge(attached.taken_in, [](const EntrySender::Entry&) {}));
  progress_.agent_id = attached.agent_id;
  progress_.life = attached.life;
  if (!same_life) progress_.seen = attached.next_event - 1;
  knows_life_ = true;
  attached_ = true;

  std::set<CommandId> ended;
  for (const HeldLaunch& launch : attached.launches) {
    if (progress_.ended.contains(launch.launch)) {
      ended.insert(launch.launch);
    } else {
      progress_.outputs.try_emplace(launch.launch);
    }
  }
  progress_.ended = std::move(ended);  // the agent has forgotten the others
  std::vector<HeldLaunch> launches = attached.launches;
  std::erase_if(launches, [&](const HeldLaunch& launch) { return progress_.ended.contains(launch.launch); });
  events_.OnAttached(attached.agent_id, attached.life, launches);
  return absl::OkStatus();
}

absl::Status AgentLink::TakeEvent(EntryKind kind, const std::string& body) {
  absl::Status status = absl::InvalidArgumentError("not an event");
  ForEachEntry([&]<typename Entry>() {
    if constexpr (requires(AgentLink & link, const Entry& entry) { link.Take(entry); }) {
      if (kind != Entry::kKind) return;
      const absl::StatusOr<Entry> entry = DecodeEntry<Entry>(body);
      status = entry.ok() ? Take(*entry) : entry.status();
    }
  });
  return status;
}

std::optional<AgentLink::Pending> AgentLink::Answered(const CommandId& command,
                                                      std::initializer_list<EntryKind> kinds) {
  if (command.supervisor != options_.supervisor) return std::nullopt;
  const auto found = pending_.find(command.number);
  if (found == pending_.end() || std::find(kinds.begin(), kinds.end(), found->second.kind) == kinds.end())
    return std::nullopt;
  Pending pending = std::move(found->second);
  pending_.erase(found);
  return pending;
}

absl::Status AgentLink::Take(const ReservedEntry& reserved) {
  if (const auto pending = Answered(reserved.command, {EntryKind::kReserve}))
    events_.OnReserved(reserved.command, pending->task, reserved.addresses);
  return absl::OkStatus();
}

absl::Status AgentLink::Take(const StartedEntry& started) {
  if (const auto pending = Answered(started.command, {EntryKind::kLaunch})) {
    progress_.outputs.try_emplace(started.command);
    events_.OnStarted(started.command, pending->task, started.pid);
  } else if (started.command.supervisor < options_.supervisor && progress_.outputs.contains(started.command)) {
    events_.OnStarted(started.command, started.task, started.pid);
  }
  return absl::OkStatus();
}

absl::Status AgentLink::Take(const FailedEntry& failed) {
  if (const auto pending = Answered(failed.command, {EntryKind::kReserve, EntryKind::kLaunch}))
    events_.OnFailed(failed.command, pending->task, failed.ToStatus());
  else if (failed.command.supervisor < options_.supervisor && progress_.outputs.contains(failed.command))
    events_.OnFailed(failed.command, failed.task, failed.ToStatus());
  // The agent's next life may name it once more, if it hasn't heard that this is known.
  progress_.outputs.erase(failed.command);
  progress_.ended.insert(failed.command);
  return absl::OkStatus();
}

absl::Status AgentLink::Take(const StoppedEntry& stopped) {
  if (Answered(stopped.command, {EntryKind::kStop})) events_.OnStopped(stopped.strays);
  acknowledge_ = true;
  return absl::OkStatus();
}

absl::Status AgentLink::Take(const OutputEntry& output) {
  if (progress_.ended.contains(output.launch)) return absl::OkStatus();
  const auto found = progress_.outputs.find(output.launch);
  if (found == progress_.outputs.end()) return absl::InvalidArgumentError("output of a launch that there isn't");
  SkipTo(output.launch, output.stream, output.position);
  uint64_t& position = found->second.of(output.stream);
  const uint64_t end = output.position + output.bytes.size();
  std::string_view fresh = output.bytes;
  if (!Has(PlantedAgentBug::kIgnorePositions)) {
    if (end <= position) return absl::OkStatus();
    fresh.remove_prefix(position - output.position);
  }
  events_.OnOutput(output.launch, output.stream, end - fresh.size(), fresh);
  position = end;
  return absl::OkStatus();
}

void AgentLink::SkipTo(const CommandId& launch, OutputStream stream, uint64_t position) {
  uint64_t& at = progress_.outputs.at(launch).of(stream);
  if (at >= position) return;
  events_.OnOutputLost(launch, stream, at, position - at);
  at = position;
}

absl::Status AgentLink::Take(const ExitedEntry& exited) {
  if (!progress_.outputs.contains(exited.launch)) return absl::OkStatus();  // known already
  SkipTo(exited.launch, OutputStream::kStdout, exited.ends.out);
  SkipTo(exited.launch, OutputStream::kStderr, exited.ends.err);
  events_.OnExit(exited.launch, exited.task, exited.status, exited.ends.unsure);
  progress_.outputs.erase(exited.launch);
  progress_.ended.insert(exited.launch);
  return absl::OkStatus();
}

absl::Status AgentLink::Take(const UsageEntry& usage) {
  events_.OnUsage(usage);
  return absl::OkStatus();
}

absl::Status AgentLink::Take(const NoteEntry& note) {
  events_.OnNote(note.line);
  return absl::OkStatus();
}

void AgentLink::Heard(absl::Time now) {
  heard_ = std::max(heard_, now);
  if (suspect_) {
    suspect_ = false;
    events_.OnSuspect(false);
  }
}

bool AgentLink::NumberIsOld(absl::Time now) const {
  return now > number_read_ + options_.limits.number_age && !Has(PlantedAgentBug::kWriteWithoutNumber);
}

void AgentLink::OnTime(absl::Time now) {
  if (lost_) return;
  if (!suspect_ && now >= heard_ + options_.limits.suspect) {
    suspect_ = true;
    events_.OnSuspect(true);
  }
  const absl::Duration limit = Has(PlantedAgentBug::kReplaceEarly) ? options_.limits.suspect : options_.limits.lost();
  if (now < heard_ + limit) return;
  lost_ = true;
  OnStreamEnd();
}

absl::Time AgentLink::deadline() const {
  if (lost_) return absl::InfiniteFuture();
  absl::Time next = heard_ + (suspect_ ? options_.limits.lost() : options_.limits.suspect);
  if (attached_ && !awaits_number_) next = std::min(next, stream_->last_made() + options_.limits.silence);
  return next;
}

std::string AgentLink::NextFrame(absl::Time now) {
  if (stream_ == nullptr) return "";
  if (NumberIsOld(now)) {
    awaits_number_ = true;
    return "";
  }
  if (!attach_sent_) {
    attach_sent_ = true;
    const auto attach = EncodeEntry(AttachEntry{.job = options_.job,
                                                .supervisor = options_.supervisor,
                                                .supervisor_id = options_.supervisor_id,
                                                .agent_id = progress_.agent_id,
                                                .life = progress_.life,
                                                .seen = progress_.seen});
    MUSTER_CHECK(attach.ok());
    return stream_->Make(now, {}, EntryKind::kAttach, 0, *attach);
  }
  if (!attached_) return "";
  const HasTaken has = {.acknowledged = progress_.seen, .received = progress_.seen + kept_.size()};
  if (const EntrySender::Entry* entry = sender_.Next())
    return stream_->Make(now, has, entry->kind, entry->number, entry->body);
  if (std::exchange(acknowledge_, false) || stream_->unacknowledged() >= options_.limits.acknowledge_bytes ||
      now >= stream_->last_made() + options_.limits.silence)
    return stream_->Make(now, has);
  return "";
}

bool AgentLink::may_send() const {
  return !lost_ && !refused_ && !stopping_ && sender_.kept_bytes() < options_.limits.kept_bytes &&
         pending_.size() < options_.limits.unanswered_commands;
}

template <typename Entry>
absl::StatusOr<CommandId> AgentLink::Send(const Entry& entry, const TaskId& task, bool answered) {
  if (lost_) return absl::FailedPreconditionError("the host is lost");
  if (refused_) return absl::FailedPreconditionError("the agent takes no commands of this supervisor");
  if (stopping_) return absl::FailedPreconditionError("the agent was told to stop");
  if (answered && !may_send()) return absl::ResourceExhaustedError("the agent has too many commands to answer");
  ASSIGN_OR_RETURN(std::string body, EncodeEntry(entry));
  const uint64_t number = sender_.Add(Entry::kKind, std::move(body));
  if (answered) pending_[number] = {.kind = Entry::kKind, .task = task};
  return CommandId{options_.supervisor, number};
}

// Other reasons are Send's.
absl::Status AgentLink::WhyNoRoom() const {
  if (may_send() || lost_ || refused_ || stopping_) return absl::OkStatus();
  return absl::ResourceExhaustedError("the agent has too many commands to take");
}

absl::StatusOr<CommandId> AgentLink::Reserve(const ReserveEntry& reserve) { return Send(reserve, reserve.task, true); }
absl::StatusOr<CommandId> AgentLink::Launch(const LaunchEntry& launch) { return Send(launch, launch.task, true); }
absl::StatusOr<CommandId> AgentLink::End(const CommandId& launch, EndMode mode) {
  return Send(EndEntry{.launch = launch, .mode = mode}, {}, false);
}
absl::StatusOr<CommandId> AgentLink::WriteHosts(const std::string& file) {
  RETURN_IF_ERROR(WhyNoRoom());
  return Send(HostsEntry{.file = file}, {}, false);
}
absl::StatusOr<CommandId> AgentLink::Input(const CommandId& launch, const std::string& bytes) {
  RETURN_IF_ERROR(WhyNoRoom());
  return Send(InputEntry{.launch = launch, .bytes = bytes}, {}, false);
}
absl::StatusOr<CommandId> AgentLink::Stop() {
  absl::StatusOr<CommandId> sent = Send(StopEntry{}, {}, false);
  if (!sent.ok()) return sent;
  pending_[sent->number] = {.kind = EntryKind::kStop};
  stopping_ = true;
  return sent;
}

}  // namespace muster
