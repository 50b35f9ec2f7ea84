#include "muster/transport/tcp/tcp_listener.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/os/descriptor_limit.h"
#include "muster/base/status_macros.h"
#include "muster/transport/tcp/moved_addresses.h"

namespace muster {
namespace {

// Checkpoint files, code to load, a status page: enough for all that a ps opens at once beside its connections.
constexpr size_t kReservedDescriptors = 64;

// "127.0.0.1" of "127.0.0.1:2222".
std::string HostOf(const std::string& peer) { return peer.substr(0, peer.rfind(':')); }

// How often to look whether the file with the port's secret is still there.
constexpr absl::Duration kKeepInterval = absl::Seconds(10);

}  // namespace

TcpListener::TcpListener(TcpEventLoop& loop, RequestHandler& handler, HandshakeIdentity identity,
                         const TcpOptions& options)
    : loop_(loop),
      handler_(handler),
      identity_(std::move(identity)),
      options_(options),
      strangers_(options.max_strangers, options.max_strangers_per_address) {}

TcpListener::~TcpListener() {
  loop_.CancelTimer(keep_timer_);
  secret_.reset();  // while the port is still taken, so that the next one's file isn't there yet
  acceptor_.reset();
  for (auto& [id, connection] : connections_) connection->Close();
}

absl::Status TcpListener::Start(const std::string& address) {
  ASSIGN_OR_RETURN(const TcpAddress target, ParseTcpAddress(address));
  absl::StatusOr<std::vector<Endpoint>> found = options_.lookup(target);
  if (!found.ok()) return absl::UnavailableError(absl::StrCat(address, ": ", found.status().message()));
  const Endpoint& endpoint = found->front();
  if (identity_.token.secret.empty() && !endpoint.is_loopback()) {
    return absl::PermissionDeniedError(
        absl::StrCat("without a job token only loopback addresses are served, and ", address,
                     " is none: set MUSTER_JOB_TOKEN to the same secret in all processes of the job"));
  }
  RETURN_IF_ERROR(Bind(endpoint, address));
  const size_t descriptors = options_.max_descriptors > 0 ? options_.max_descriptors : DescriptorLimit();
  first_reserved_ = static_cast<int>(descriptors - std::min(kReservedDescriptors, descriptors / 4));
  const Endpoint bound = LocalEndpoint(socket_.fd());
  const bool numeric = Resolve(target, /*numeric_only=*/true).ok();
  address_ = numeric ? bound.ToString() : absl::StrCat(target.host, ":", bound.port());
  if (identity_.token.secret.empty()) {
    ASSIGN_OR_RETURN(secret_, PortSecret::Publish(bound));
    identity_.token.secret = secret_->token().secret;
    KeepSecretLater();
  }
  acceptor_.emplace(loop_, socket_.fd(), [this](Socket connection) { OnAccepted(std::move(connection)); });
  if ((identity_.offers & kOfferSharedMemory) == 0) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<ShmAcceptor>> port =
      ShmAcceptor::Open(loop_, options_.shared_memory, options_.handshake_timeout);
  if (port.ok()) {
    port_ = *std::move(port);
  } else {
    LogWarning(port.status().message());
    identity_.offers = 0;
  }
  return absl::OkStatus();
}

void TcpListener::KeepSecretLater() {
  keep_timer_ = loop_.CallAt(loop_.Now() + kKeepInterval, [this] {
    if (const absl::Status kept = secret_->Keep(); !kept.ok())
      LogWarning("new processes can't join at ", address_, ": ", kept.message());
    KeepSecretLater();
  });
}

absl::Status TcpListener::Bind(const Endpoint& endpoint, const std::string& address) {
  socket_ = Socket(socket(endpoint.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (socket_.valid() && setsockopt(socket_.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
      bind(socket_.fd(), endpoint.get(), endpoint.length) == 0 && listen(socket_.fd(), SOMAXCONN) == 0) {
    return absl::OkStatus();
  }
  const int error = errno;
  if (error == EADDRINUSE) {
    return absl::AlreadyExistsError(absl::StrCat("port ", endpoint.port(), " (", address,
                                                 ") is in use by another process: end it or take another port"));
  }
  if (error == EACCES) {
    return absl::PermissionDeniedError(absl::StrCat(address, " may not be served: ", Describe(error)));
  }
  return absl::InvalidArgumentError(absl::StrCat(address, " can't be served: ", Describe(error)));
}

void TcpListener::OnAccepted(Socket socket) {
  const std::string peer = RemoteEndpoint(socket.fd()).ToString();
  const bool busy = !MakeRoom(socket, HostOf(peer));
  const uint64_t id = next_id_++;
  strangers_.Add(id, HostOf(peer));
  auto connection = std::make_shared<TcpServerConnection>(
      loop_, options_, handler_, static_cast<TcpServerConnection::Host&>(*this), port_.get(), ConnectionId{id}, peer);
  connections_[id] = connection;
  auto ask_reached = [this, ends = ConnectionEnds{.client = peer, .server = LocalEndpoint(socket.fd()).ToString()}](
                         const Destination& destination) {
    const JobToken& token = identity_.token;
    return WhoIsReached(token.tasks, ClusterFileText(token.cluster_file), destination, ends);
  };
  connection->Start(std::move(socket),
                    std::make_unique<ServerHandshake>(identity_, RandomNonce(), busy, std::move(ask_reached)));
}

bool TcpListener::MakeRoom(const Socket& socket, const std::string& address) {
  // The system gives the lowest free number, so all below this one are in use.
  const bool short_of_descriptors = socket.fd() >= first_reserved_;
  const auto has_greeted = [this](uint64_t id) { return connections_.at(id)->connection().greeted(); };
  const std::optional<uint64_t> goes = strangers_.WhoMakesRoom(address, short_of_descriptors, has_greeted);
  if (goes) {
    ++stats_.dropped_for_room;
    const std::shared_ptr<TcpServerConnection> connection = connections_.at(*goes);
    connection->Close();
    OnEnd(ConnectionId{*goes}, TcpConnection::Fault::kHandshake);
  }
  const size_t members = connections_.size() - strangers_.size();
  return members < options_.max_connections && (goes || !short_of_descriptors);
}

void TcpListener::OnPassed(ConnectionId id) {
  strangers_.Remove(static_cast<uint64_t>(id));
  ++stats_.accepted;
}

void TcpListener::OnEnd(ConnectionId id, TcpConnection::Fault fault) {
  auto it = connections_.find(static_cast<uint64_t>(id));
  const TcpServerConnection& connection = *it->second;
  if (!connection.passed()) {
    ++stats_.dropped_handshake;
  } else if (fault != TcpConnection::Fault::kLost) {
    ++stats_.dropped_malformed;
  }
  stats_.requests += connection.requests();
  stats_.bytes_received += connection.connection().bytes_received();
  stats_.bytes_sent += connection.connection().bytes_sent();
  strangers_.Remove(static_cast<uint64_t>(id));
  connections_.erase(it);
}

Listener::Stats TcpListener::stats() const {
  Stats stats = stats_;
  stats.in_handshake = strangers_.size();
  for (const auto& [id, connection] : connections_) {
    if (connection->passed()) ++stats.connections;
    if (connection->in_shared_memory()) stats.in_shared_memory.push_back(ConnectionId{id});
    stats.requests += connection->requests();
    stats.bytes_received += connection->connection().bytes_received();
    stats.bytes_sent += connection->connection().bytes_sent();
  }
  return stats;
}

}  // namespace muster
