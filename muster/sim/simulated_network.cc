#include "muster/sim/simulated_network.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/sim/simulated_channel.h"
#include "muster/sim/simulated_listener.h"

namespace muster {
namespace {

std::pair<std::string, std::string> InOrder(const std::string& one, const std::string& other) {
  return {std::min(one, other), std::max(one, other)};
}

bool Connects(const SimulatedConnection& connection, const std::string& one, const std::string& other) {
  const std::string& client = connection.client_thread->process().name();
  const std::string& server = connection.server_thread->process().name();
  return (client == one && server == other) || (client == other && server == one);
}

}  // namespace

absl::Status SimulatedNetwork::Listen(const std::string& address, SimulatedListener* listener) {
  if (listeners_.emplace(address, listener).second) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat("address ", address, " is in use"));
}

// Lies between the shortest and the longest, short ones more often. Drawn for each message by its number, so that a
// schedule with one fault fewer keeps most of its delays.
absl::Duration SimulatedNetwork::Delay(uint64_t connection, uint64_t message) const {
  const uint64_t drawn = HashNumbers(world_.seed(), connection, message);
  const double fraction = static_cast<double>(drawn >> 40) / static_cast<double>(1 << 24);
  const absl::Duration usual = options_.shortest + (options_.longest - options_.shortest) * (fraction * fraction);
  if (options_.slow_one_in == 0 || drawn % options_.slow_one_in != 0) return usual;
  return usual + options_.slow * fraction;
}

absl::Time SimulatedNetwork::PartedUntil(const SimulatedConnection& connection) const {
  if (connection.server_thread == nullptr) return absl::InfinitePast();
  const auto found =
      parted_.find(InOrder(connection.client_thread->process().name(), connection.server_thread->process().name()));
  return found == parted_.end() ? absl::InfinitePast() : found->second;
}

absl::Time SimulatedNetwork::Arrival(SimulatedConnection& connection, absl::Time& last) {
  const absl::Time leaves = std::max(world_.Now(), PartedUntil(connection));
  last = std::max(last + absl::Nanoseconds(1), leaves + Delay(connection.number, ++connection.messages));
  return last;
}

SimulatedNetwork::Connection SimulatedNetwork::Open(SimulatedChannel& channel, SimulatedThread& thread,
                                                    const std::string& address) {
  auto connection = std::make_shared<SimulatedConnection>();
  connection->number = ++last_connection_;
  connection->client = &channel;
  connection->client_thread = &thread;
  // The kernel of the server's host accepts, not the server itself, so a paused server delays nothing here.
  world_.At(Arrival(*connection, connection->last_to_server), [this, connection, address] {
    if (connection->client != nullptr && connection->client_thread->process().alive()) Accept(connection, address);
  });
  return connection;
}

void SimulatedNetwork::Accept(const Connection& connection, const std::string& address) {
  const auto found = listeners_.find(address);
  if (found == listeners_.end()) {
    connection->client_open = true;
    BreakAtClient(connection, Arrival(*connection, connection->last_to_client));
    return;
  }
  connection->server = found->second;
  connection->server_thread = &found->second->thread();
  connection->client_open = connection->server_open = true;
  std::erase_if(connections_, [](const Connection& c) { return !c->client_open && !c->server_open; });
  connections_.push_back(connection);
  ToServer(connection, [this, connection] {
    if (connection->server == nullptr) return;
    connection->server->OnOpen(connection);
    ToClient(connection, [connection] {
      if (connection->client != nullptr) connection->client->OnConnected(connection.get());
    });
  });
}

void SimulatedNetwork::ToServer(const Connection& connection, EventLoop::Handler handler) {
  connection->server_thread->loop().CallAt(Arrival(*connection, connection->last_to_server),
                                           [connection, handler = std::move(handler)]() mutable {
                                             if (connection->server_open) handler();
                                           });
}

void SimulatedNetwork::ToClient(const Connection& connection, EventLoop::Handler handler) {
  connection->client_thread->loop().CallAt(Arrival(*connection, connection->last_to_client),
                                           [connection, handler = std::move(handler)]() mutable {
                                             if (connection->client_open) handler();
                                           });
}

void SimulatedNetwork::BreakAtClient(const Connection& connection, absl::Time when) {
  connection->client_thread->loop().CallAt(when, [connection] {
    if (!std::exchange(connection->client_open, false) || connection->client == nullptr) return;
    connection->client->OnBroken(connection.get());
  });
}

void SimulatedNetwork::BreakAtServer(const Connection& connection, absl::Time when) {
  connection->server_thread->loop().CallAt(when, [connection] {
    if (!std::exchange(connection->server_open, false) || connection->server == nullptr) return;
    connection->server->OnClose(*connection);
  });
}

void SimulatedNetwork::Cut(const std::string& one, const std::string& other, absl::Duration client_sees,
                           absl::Duration server_sees) {
  for (const Connection& connection : connections_) {
    if (!Connects(*connection, one, other)) continue;
    BreakAtClient(connection, world_.Now() + client_sees);
    BreakAtServer(connection, world_.Now() + server_sees);
  }
}

void SimulatedNetwork::Part(const std::string& one, const std::string& other, absl::Time until) {
  absl::Time& parted = parted_[InOrder(one, other)];
  parted = std::max(parted, until);
}

void SimulatedNetwork::Close(SimulatedProcess& process) {
  std::erase_if(listeners_, [&](const auto& entry) { return &entry.second->thread().process() == &process; });
  for (const Connection& connection : connections_) {
    // What the process had sent is still on its way; the end of the connection comes after it.
    if (&connection->client_thread->process() == &process && connection->server_open)
      BreakAtServer(connection, Arrival(*connection, connection->last_to_server));
    if (&connection->server_thread->process() == &process && connection->client_open)
      BreakAtClient(connection, Arrival(*connection, connection->last_to_client));
  }
  std::erase_if(connections_, [](const Connection& c) { return !c->client_open && !c->server_open; });
}

}  // namespace muster
