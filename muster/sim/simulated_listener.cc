#include "muster/sim/simulated_listener.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/sim/simulated_channel.h"

namespace muster {
namespace {

class SimulatedSink final : public Responder::Sink {
 public:
  SimulatedSink(SimulatedNetwork::Connection connection, uint64_t id) : connection_(std::move(connection)), id_(id) {}

  void Send(uint64_t, absl::Status status, absl::string_view control, absl::Span<const ByteSpan> bulk,
            std::shared_ptr<const void>) override {
    if (connection_->server == nullptr) return;
    absl::StatusOr<std::string> result = std::string(control);
    if (!status.ok()) result = std::move(status);
    connection_->server->Answer(connection_, id_, std::move(result), bulk);
  }

 private:
  const SimulatedNetwork::Connection connection_;
  const uint64_t id_;
};

}  // namespace

SimulatedListener::~SimulatedListener() {
  for (auto& [id, peer] : peers_) {
    SimulatedConnection& connection = *peer.connection;
    connection.server = nullptr;
    connection.server_open = false;
    // If the process is being killed, the network has already closed the connection.
    if (!connection.client_open || !thread_.process().alive()) continue;
    network_.ToClient(peer.connection, [kept = peer.connection] {
      kept->client_open = false;
      if (kept->client != nullptr) kept->client->OnBroken(kept.get());
    });
  }
  if (thread_.process().alive()) network_.StopListening(address_);
}

void SimulatedListener::OnOpen(const SimulatedNetwork::Connection& connection) {
  connection->id = ConnectionId{next_connection_++};
  peers_[connection->id].connection = connection;
  ++stats_.accepted;
  stats_.connections = peers_.size();
  handler_.OnConnect(connection->id, connection->client_thread->name());
}

void SimulatedListener::OnClose(SimulatedConnection& connection) {
  if (peers_.erase(connection.id) == 0) return;
  stats_.connections = peers_.size();
  handler_.OnDisconnect(connection.id);
}

void SimulatedListener::OnControl(const SimulatedNetwork::Connection& connection,
                                  const std::shared_ptr<SimulatedMessage>& message) {
  message->request.connection = connection->id;
  stats_.bytes_received += message->request.control.size();
  ++stats_.requests;
  if (message->bulk.empty()) return HandOn(connection, *message, nullptr);
  absl::StatusOr<std::unique_ptr<BulkTarget>> target = handler_.PrepareBulk(message->request);
  if (!target.ok()) return Answer(connection, message->id, target.status(), {});
  MUSTER_CHECK(*target != nullptr && TotalBytes((*target)->segments()) == message->bulk.size());
  peers_[connection->id].targets[message->id] = *std::move(target);
}

void SimulatedListener::OnBulk(const SimulatedNetwork::Connection& connection, SimulatedMessage& message) {
  auto& targets = peers_[connection->id].targets;
  const auto found = targets.find(message.id);
  if (found == targets.end()) return;  // the request was refused
  std::unique_ptr<BulkTarget> target = std::move(found->second);
  targets.erase(found);
  ByteSpan bulk = message.bulk;
  stats_.bytes_received += bulk.size();
  for (const MutableByteSpan segment : target->segments()) {
    if (!segment.empty()) std::memcpy(segment.data(), bulk.data(), segment.size());
    bulk = bulk.subspan(segment.size());
  }
  HandOn(connection, message, std::move(target));
}

void SimulatedListener::HandOn(const SimulatedNetwork::Connection& connection, SimulatedMessage& message,
                               std::unique_ptr<BulkTarget> target) {
  handler_.Handle(message.request, std::move(target),
                  Responder(std::make_unique<SimulatedSink>(connection, message.id)));
}

void SimulatedListener::Answer(const SimulatedNetwork::Connection& connection, uint64_t id,
                               absl::StatusOr<std::string> control, absl::Span<const ByteSpan> bulk) {
  if (!connection->server_open || !thread_.process().alive()) return;
  std::vector<std::byte> bytes;
  for (const ByteSpan segment : bulk) bytes.insert(bytes.end(), segment.begin(), segment.end());
  stats_.bytes_sent += bytes.size() + (control.ok() ? control->size() : 0);
  network_.ToClient(connection, [connection, id, control = std::move(control), bytes = std::move(bytes)]() mutable {
    if (connection->client == nullptr) return;
    connection->client->OnReply(connection.get(), id, std::move(control), bytes);
  });
}

}  // namespace muster
