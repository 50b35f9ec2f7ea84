#include "muster/transport/loopback/loopback_channel.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/transport/loopback/loopback_listener.h"

namespace muster {

LoopbackChannel::LoopbackChannel(LoopbackNetwork& network, EventLoop& loop, std::string address,
                                 HandshakeIdentity identity, const LoopbackOptions& options)
    : network_(network),
      loop_(loop),
      address_(std::move(address)),
      identity_(std::move(identity)),
      options_(options),
      self_(std::make_shared<LoopbackClient>(loop, *this)),
      backoff_(options.backoff, options.seed),
      calls_(loop, [this](uint64_t id) { OnExpired(id); }) {
  calls_.set_peer(address_);
}

LoopbackChannel::~LoopbackChannel() {
  self_->mailbox.Close();
  self_->channel = nullptr;
  if (retry_pending_) loop_.CancelTimer(retry_);
  for (auto& [id, memory] : memory_) {
    MutexLock lock(memory->mutex);
    memory->live = false;
  }
  if (link_) {
    link_->server->mailbox.Post([link = link_] {
      if (link->server->listener) link->server->listener->OnClose(link.get());
    });
  }
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
    if (link_) {
      SendWaiting();
    } else if (!retry_pending_) {
      Connect();
    }
  }
  return CallId{id};
}

void LoopbackChannel::Connect() {
  std::shared_ptr<LoopbackServer> server = network_.Find(address_);
  if (server == nullptr) {
    trouble_ = "connection refused";
    retry_pending_ = true;
    retry_ = loop_.CallAt(loop_.Now() + backoff_.Next(), [this] {
      retry_pending_ = false;
      if (calls_.size() > 0) Connect();
    });
    return;
  }
  absl::Status refused = CheckLoopbackPeer(identity_, server->identity);
  if (!refused.ok()) {
    server->mailbox.Post([server] {
      if (server->listener) server->listener->OnRefused();
    });
    waiting_.clear();
    for (uint64_t id : calls_.Ids()) {
      calls_.FinishLater(id, absl::Status(refused.code(), absl::StrCat(address_, ": ", refused.message())));
    }
    return;
  }
  backoff_.Reset();
  counts_.AddConnect();
  counts_.SetLink("loopback");
  link_ = std::make_shared<LoopbackLink>();
  link_->server = std::move(server);
  link_->client = self_;
  link_->server->mailbox.Post([link = link_] {
    if (link->server->listener) {
      link->server->listener->OnOpen(link);
    } else {
      LoopbackListener::TellBroken(link);
    }
  });
  SendWaiting();
}

void LoopbackChannel::SendWaiting() {
  while (link_ && !waiting_.empty()) {
    const uint64_t id = waiting_.front();
    waiting_.pop_front();
    if (CallTable::Call* call = calls_.Find(id)) Send(id, *call);
  }
}

void LoopbackChannel::Send(uint64_t id, CallTable::Call& call) {
  call.sent = true;
  counts_.AddCall();
  LoopbackMessage message;
  message.id = id;
  message.method = call.request.method;
  message.control = call.request.control;
  message.bulk_bytes = TotalBytes(call.request.bulk);
  message.time_left = call.request.deadline - loop_.Now();
  message.cut_after = call.request.cut_after;
  message.memory = std::make_shared<LoopbackMemory>();
  counts_.AddSent(kFrameHeaderBytes + message.control.size() + message.bulk_bytes);
  {
    MutexLock lock(message.memory->mutex);
    message.memory->bulk = call.request.bulk;
    message.memory->into = call.request.into;
  }
  memory_.emplace(id, message.memory);
  link_->server->mailbox.Post([link = link_, message = std::move(message)]() mutable {
    if (link->server->listener) link->server->listener->OnRequest(link.get(), std::move(message));
  });
}

void LoopbackChannel::Cancel(CallId call) {
  Abandon(static_cast<uint64_t>(call), absl::CancelledError(absl::StrCat(address_, ": the call was cancelled")));
}

void LoopbackChannel::Abandon(uint64_t id, absl::Status status) {
  if (calls_.Find(id) == nullptr) return;
  auto it = memory_.find(id);
  if (it != memory_.end()) {
    MutexLock lock(it->second->mutex);
    it->second->live = false;
  }
  memory_.erase(id);
  calls_.FinishLater(id, std::move(status));
}

void LoopbackChannel::OnExpired(uint64_t id) {
  const CallTable::Call& call = *calls_.Find(id);
  const absl::Duration waited = call.request.deadline - call.started;
  Abandon(id, call.sent ? absl::DeadlineExceededError(
                              absl::StrCat(address_, " didn't answer within ", absl::FormatDuration(waited)))
                        : UnreachableError(address_, waited, trouble_));
}

void LoopbackChannel::OnReply(const LoopbackLink* link, uint64_t id, absl::StatusOr<Reply> reply) {
  // A call that was given up is no longer in the table. Ids are never reused, so `link` matters only after a break.
  if (link != link_.get() || calls_.Find(id) == nullptr) return;
  memory_.erase(id);
  if (reply.ok()) {
    counts_.AddReceived(kFrameHeaderBytes + reply->control.size() + reply->bulk_bytes);
  } else {
    reply = absl::Status(reply.status().code(), absl::StrCat(address_, ": ", reply.status().message()));
  }
  calls_.Finish(id, std::move(reply));
}

void LoopbackChannel::OnBroken(const LoopbackLink* link) {
  if (link != link_.get()) return;
  link_ = nullptr;
  counts_.SetLink("");
  trouble_ = "the connection broke";
  std::vector<uint64_t> broken;
  for (const auto& [id, memory] : memory_) {
    broken.push_back(id);
    MutexLock lock(memory->mutex);
    memory->live = false;
  }
  memory_.clear();
  std::sort(broken.begin(), broken.end());
  calls_.FinishAll(broken, absl::UnavailableError(absl::StrCat(address_, ": the connection broke")));
}

}  // namespace muster
