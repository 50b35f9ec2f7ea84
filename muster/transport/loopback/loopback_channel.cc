#include "muster/transport/loopback/loopback_channel.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/transport/loopback/loopback_listener.h"

namespace muster {

LoopbackChannel::LoopbackChannel(LoopbackNetwork& network, EventLoop& loop, std::string address, LoopbackParty party,
                                 const LoopbackOptions& options)
    : network_(network),
      loop_(loop),
      address_(std::move(address)),
      options_(options),
      self_(std::make_shared<LoopbackClient>(loop, std::move(party), *this)),
      backoff_(options.backoff, options.seed),
      calls_(loop, [this](uint64_t id) { OnExpired(id); }) {
  calls_.set_peer(address_);
}

LoopbackChannel::~LoopbackChannel() {
  self_->mailbox.Close();
  self_->end = nullptr;
  if (retry_pending_) loop_.CancelTimer(retry_);
  for (auto& [id, message] : sent_) message->End();
  if (!link_) return;
  link_->client_open = false;
  if (link_->server) network_.ToServer(link_, [link = link_](LoopbackListener& listener) { listener.OnClose(*link); });
}

Channel::CallId LoopbackChannel::Call(const Request& request, ReplyCallback done) {
  const size_t control_bytes = request.control.size();
  const size_t bulk_bytes = TotalBytes(request.bulk);
  const uint64_t id = calls_.Add(request, std::move(done));
  if (control_bytes > options_.limits.max_control_bytes || bulk_bytes > options_.limits.max_bulk_bytes) {
    calls_.FinishLater(
        id, absl::InvalidArgumentError(absl::StrCat(address_, ": a request of ", control_bytes, " control bytes and ",
                                                    bulk_bytes, " bulk bytes is over the limit")));
  } else if (calls_.size() > options_.max_calls_in_flight) {
    calls_.FinishLater(id, absl::ResourceExhaustedError(
                               absl::StrCat(address_, ": ", calls_.size() - 1, " calls are in flight already")));
  } else {
    waiting_.push_back(id);
    if (connected_) {
      SendWaiting();
    } else if (!link_ && !retry_pending_) {
      Connect();
    }
  }
  return CallId{id};
}

void LoopbackChannel::Connect() {
  link_ = network_.MakeLink();
  link_->client = self_;
  network_.Open(link_, address_);
}

void LoopbackChannel::OnConnected() {
  connected_ = true;
  backoff_.Reset();
  counts_.AddConnect();
  counts_.SetLink("loopback");
  SendWaiting();
}

void LoopbackChannel::OnRefused(const absl::Status& status) {
  LeaveLink();
  waiting_.clear();
  calls_.FinishAll(calls_.Ids(), absl::Status(status.code(), absl::StrCat(address_, ": ", status.message())));
}

void LoopbackChannel::SendWaiting() {
  while (connected_ && !waiting_.empty()) {
    const uint64_t id = waiting_.front();
    waiting_.pop_front();
    if (CallTable::Call* call = calls_.Find(id)) Send(id, *call);
  }
}

void LoopbackChannel::Send(uint64_t id, CallTable::Call& call) {
  call.sent = true;
  counts_.AddCall();
  auto message = std::make_shared<LoopbackMessage>();
  message->id = id;
  message->request.method = call.request.method;
  message->request.control = call.request.control;
  message->request.bulk_bytes = TotalBytes(call.request.bulk);
  message->time_left = call.request.deadline - loop_.Now();
  counts_.AddSent(kFrameHeaderBytes + message->request.control.size() + message->request.bulk_bytes);
  {
    MutexLock lock(message->mutex);
    message->bulk = call.request.bulk;
    message->into = call.request.into;
  }
  sent_.emplace(id, message);
  network_.SendRequest(link_, message);
}

void LoopbackChannel::Cancel(CallId call) {
  Abandon(static_cast<uint64_t>(call), absl::CancelledError(absl::StrCat(address_, ": the call was cancelled")));
}

void LoopbackChannel::Abandon(uint64_t id, absl::Status status) {
  if (calls_.Find(id) == nullptr) return;
  EndMessage(id);
  calls_.FinishLater(id, std::move(status));
}

void LoopbackChannel::OnExpired(uint64_t id) {
  const CallTable::Call& call = *calls_.Find(id);
  const absl::Duration waited = call.request.deadline - call.started;
  Abandon(id, call.sent ? absl::DeadlineExceededError(
                              absl::StrCat(address_, " didn't answer within ", absl::FormatDuration(waited)))
                        : UnreachableError(address_, waited, trouble_));
}

void LoopbackChannel::OnReply(uint64_t id, absl::StatusOr<Reply> reply) {
  if (calls_.Find(id) == nullptr) return;  // it was given up
  EndMessage(id);
  if (reply.ok()) {
    counts_.AddReceived(kFrameHeaderBytes + reply->control.size() + reply->bulk_bytes);
  } else {
    reply = absl::Status(reply.status().code(), absl::StrCat(address_, ": ", reply.status().message()));
  }
  calls_.Finish(id, std::move(reply));
}

void LoopbackChannel::EndMessage(uint64_t id) {
  const auto it = sent_.find(id);
  if (it == sent_.end()) return;
  it->second->End();
  sent_.erase(it);
}

void LoopbackChannel::LeaveLink() {
  link_->client_open = false;
  link_ = nullptr;
  connected_ = false;
  counts_.SetLink("");
}

void LoopbackChannel::OnBroken() {
  const bool was_connected = connected_;
  LeaveLink();
  if (!was_connected) {
    trouble_ = "connection refused";
    retry_pending_ = true;
    retry_ = loop_.CallAt(loop_.Now() + backoff_.Next(), [this] {
      retry_pending_ = false;
      if (calls_.size() > 0 && !link_) Connect();
    });
    return;
  }
  trouble_ = "the connection broke";
  std::vector<uint64_t> broken;
  for (const auto& [id, message] : sent_) {
    broken.push_back(id);
    message->End();
  }
  sent_.clear();
  std::sort(broken.begin(), broken.end());
  calls_.FinishAll(broken, absl::UnavailableError(absl::StrCat(address_, ": the connection broke")));
}

}  // namespace muster
