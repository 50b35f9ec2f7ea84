#include "muster/transport/fault/fault_channel.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace muster {

FaultChannel::FaultChannel(EventLoop& loop, std::unique_ptr<Channel> inner, FaultScript& script)
    : loop_(loop), script_(script), inner_(std::move(inner)), calls_(loop, [this](uint64_t id) { OnExpired(id); }) {
  calls_.set_peer(inner_->peer());
}

FaultChannel::~FaultChannel() {
  for (const auto& [id, state] : states_) loop_.CancelTimer(state.timer);
  inner_ = nullptr;  // ends the inner channel's calls
}

bool FaultChannel::Meets(uint64_t id, FaultKind kind) const {
  auto it = states_.find(id);
  return it != states_.end() && it->second.fault && it->second.fault->kind == kind;
}

Channel::CallId FaultChannel::Call(const Request& request, ReplyCallback done) {
  const std::optional<Fault> fault = script_.Meet(request.method, peer());
  const uint64_t id = calls_.Add(request, std::move(done));
  State& state = states_[id];
  state.fault = fault;
  if (!fault) {
    Forward(id);
    return CallId{id};
  }
  switch (fault->kind) {
    case FaultKind::kDropRequest:
      break;
    case FaultKind::kDelayRequest:
    case FaultKind::kRefuse:
      state.timer = loop_.CallAt(loop_.Now() + fault->delay, [this, id] { Forward(id); });
      break;
    case FaultKind::kDuplicateRequest: {
      const Request copy = calls_.Find(id)->request;
      Forward(id);
      SendAgain(copy);
      break;
    }
    case FaultKind::kCutRequest:
      calls_.Find(id)->request.cut_after = fault->bytes;
      Forward(id);
      break;
    default:
      Forward(id);
  }
  return CallId{id};
}

void FaultChannel::Forward(uint64_t id) {
  CallTable::Call& call = *calls_.Find(id);
  call.sent = true;
  states_[id].inner =
      inner_->Call(call.request, [this, id](absl::StatusOr<Reply>& result) { OnInner(id, std::move(result)); });
}

// Sends a copy with its own memory: the caller takes its memory back after the first answer.
void FaultChannel::SendAgain(const Request& request) {
  struct Memory {
    std::vector<std::byte> bulk;
    std::vector<std::byte> into;
  };
  auto memory = std::make_shared<Memory>();
  for (ByteSpan segment : request.bulk) memory->bulk.insert(memory->bulk.end(), segment.begin(), segment.end());
  memory->into.resize(TotalBytes(request.into));
  Request again = request;
  again.bulk = {ByteSpan(memory->bulk)};
  again.into = {MutableByteSpan(memory->into)};
  inner_->Call(again, [memory](const absl::StatusOr<Reply>&) {});
}

void FaultChannel::OnInner(uint64_t id, absl::StatusOr<Reply> result) {
  State& state = states_[id];
  state.inner.reset();
  // An error isn't an answer that could be lost.
  const std::optional<Fault> fault = result.ok() ? state.fault : std::nullopt;
  if (fault && fault->kind == FaultKind::kDropReply) return;
  if (fault && fault->kind == FaultKind::kDelayReply) {
    state.timer = loop_.CallAt(loop_.Now() + fault->delay,
                               [this, id, result = std::move(result)]() mutable { Finish(id, std::move(result)); });
    return;
  }
  if (fault && fault->kind == FaultKind::kCutReply) {
    Request cut;
    cut.control = "cut";
    cut.cut_after = 0;
    inner_->Call(cut, [](const absl::StatusOr<Reply>&) {});
    result = absl::UnavailableError(absl::StrCat(peer(), ": the connection was cut by a scripted fault"));
  }
  Finish(id, std::move(result));
}

void FaultChannel::Cancel(CallId call) {
  const uint64_t id = static_cast<uint64_t>(call);
  auto it = states_.find(id);
  if (it == states_.end()) return;
  if (it->second.inner) {
    inner_->Cancel(*it->second.inner);  // this ends it here, too
  } else {
    FinishLater(id, absl::CancelledError(absl::StrCat(peer(), ": the call was cancelled")));
  }
}

void FaultChannel::OnExpired(uint64_t id) {
  if (states_[id].inner) return;  // the inner channel watches the deadline, too
  const CallTable::Call& call = *calls_.Find(id);
  const absl::Duration waited = call.request.deadline - call.started;
  FinishLater(id, Meets(id, FaultKind::kRefuse) ? UnreachableError(peer(), waited, "connection refused")
                                                : absl::DeadlineExceededError(absl::StrCat(
                                                      peer(), " didn't answer within ", absl::FormatDuration(waited))));
}

void FaultChannel::Finish(uint64_t id, absl::StatusOr<Reply> result) {
  states_.erase(id);
  calls_.Finish(id, std::move(result));
}

void FaultChannel::FinishLater(uint64_t id, absl::Status status) {
  loop_.CancelTimer(states_[id].timer);
  states_.erase(id);
  calls_.FinishLater(id, std::move(status));
}

}  // namespace muster
