#include "muster/sim/simulated_channel.h"

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/sim/simulated_listener.h"

namespace muster {

SimulatedChannel::SimulatedChannel(SimulatedNetwork& network, SimulatedThread& thread, std::string address,
                                   uint64_t seed)
    : network_(network),
      thread_(thread),
      address_(std::move(address)),
      backoff_({}, seed),
      calls_(thread.loop(), [this](uint64_t id) { OnExpired(id); }) {
  calls_.set_peer(address_);
}

SimulatedChannel::~SimulatedChannel() {
  if (retry_pending_) thread_.loop().CancelTimer(retry_);
  if (!connection_) return;
  connection_->client = nullptr;
  connection_->client_open = false;
  // If the process is being killed, the network has already closed the connection.
  if (!connection_->server_open || !thread_.process().alive()) return;
  network_.ToServer(connection_, [connection = connection_] {
    connection->server_open = false;
    if (connection->server != nullptr) connection->server->OnClose(*connection);
  });
}

Channel::CallId SimulatedChannel::Call(const Request& request, ReplyCallback done) {
  // Callbacks don't run while a killed process is unwound: what they refer to may be gone, and a real one wouldn't run
  // them.
  const uint64_t id =
      calls_.Add(request, [&process = thread_.process(), done = std::move(done)](absl::StatusOr<Reply>& reply) mutable {
        if (process.alive()) done(reply);
      });
  waiting_.push_back(id);
  if (connected_) {
    SendWaiting();
  } else if (!connection_ && !retry_pending_) {
    Connect();
  }
  return CallId{id};
}

void SimulatedChannel::Connect() { connection_ = network_.Open(*this, thread_, address_); }

void SimulatedChannel::OnConnected(const SimulatedConnection* connection) {
  if (connection != connection_.get()) return;
  connected_ = true;
  ++stats_.connects;
  backoff_.Reset();
  SendWaiting();
}

void SimulatedChannel::SendWaiting() {
  while (connected_ && !waiting_.empty()) {
    const uint64_t id = waiting_.front();
    waiting_.pop_front();
    if (CallTable::Call* call = calls_.Find(id)) Send(id, *call);
  }
}

// Copies the bytes here, like a kernel: what arrives later, after the caller has given up, is still intact.
void SimulatedChannel::Send(uint64_t id, CallTable::Call& call) {
  call.sent = true;
  ++stats_.calls;
  auto message = std::make_shared<SimulatedMessage>();
  message->id = id;
  message->request.method = call.request.method;
  message->request.control = call.request.control;
  message->request.deadline = call.request.deadline;
  for (const ByteSpan segment : call.request.bulk)
    message->bulk.insert(message->bulk.end(), segment.begin(), segment.end());
  message->request.bulk_bytes = message->bulk.size();
  stats_.bytes_sent += message->request.control.size() + message->bulk.size();
  network_.ToServer(connection_, [connection = connection_, message] {
    if (connection->server != nullptr) connection->server->OnControl(connection, message);
  });
  if (message->bulk.empty()) return;
  network_.ToServer(connection_, [connection = connection_, message] {
    if (connection->server != nullptr) connection->server->OnBulk(connection, *message);
  });
}

void SimulatedChannel::Cancel(CallId call) {
  const uint64_t id = static_cast<uint64_t>(call);
  if (calls_.Find(id) == nullptr) return;
  calls_.FinishLater(id, absl::CancelledError(absl::StrCat(address_, ": the call was cancelled")));
}

void SimulatedChannel::OnExpired(uint64_t id) {
  const CallTable::Call& call = *calls_.Find(id);
  const absl::Duration waited = call.request.deadline - call.started;
  calls_.FinishLater(id, call.sent ? absl::DeadlineExceededError(
                                         absl::StrCat(address_, " didn't answer within ", absl::FormatDuration(waited)))
                                   : UnreachableError(address_, waited, trouble_));
}

void SimulatedChannel::OnReply(const SimulatedConnection* connection, uint64_t id, absl::StatusOr<std::string> control,
                               ByteSpan bulk) {
  CallTable::Call* call = calls_.Find(id);
  if (connection != connection_.get() || call == nullptr) return;
  if (!control.ok()) {
    calls_.Finish(id, absl::Status(control.status().code(), absl::StrCat(address_, ": ", control.status().message())));
    return;
  }
  const MutableSegments& into = call->request.into;
  if (bulk.size() > TotalBytes(into)) {
    calls_.Finish(id, absl::DataLossError(absl::StrCat(address_, ": a reply of ", bulk.size(),
                                                       " bytes doesn't fit into ", TotalBytes(into))));
    return;
  }
  const size_t bulk_bytes = bulk.size();
  for (const MutableByteSpan target : into) {
    const ByteSpan piece = bulk.first(std::min(bulk.size(), target.size()));
    if (!piece.empty()) std::memcpy(target.data(), piece.data(), piece.size());
    bulk = bulk.subspan(piece.size());
  }
  stats_.bytes_received += control->size() + bulk_bytes;
  calls_.Finish(id, Reply{*std::move(control), bulk_bytes});
}

void SimulatedChannel::OnBroken(const SimulatedConnection* connection) {
  if (connection != connection_.get()) return;
  connection_ = nullptr;
  if (!std::exchange(connected_, false)) {
    trouble_ = "connection refused";
    retry_pending_ = true;
    retry_ = thread_.loop().CallAt(thread_.loop().Now() + backoff_.Next(), [this] {
      retry_pending_ = false;
      if (calls_.size() > 0 && !connection_) Connect();
    });
    return;
  }
  trouble_ = "the connection broke";
  std::vector<uint64_t> broken;
  for (const uint64_t id : calls_.Ids())
    if (calls_.Find(id)->sent) broken.push_back(id);
  calls_.FinishAll(broken, absl::UnavailableError(absl::StrCat(address_, ": the connection broke")));
}

}  // namespace muster
