#include "muster/transport/loopback/loopback_network.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/transport/loopback/loopback_channel.h"
#include "muster/transport/loopback/loopback_listener.h"

namespace muster {

absl::StatusOr<std::string> LoopbackNetwork::Add(const std::string& address,
                                                 const std::shared_ptr<LoopbackServer>& server) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == address.size()) {
    return absl::InvalidArgumentError(absl::StrCat("'", address, "' is not an address; accepted: host:port"));
  }
  MutexLock lock(mutex_);
  std::string name = address;
  while (absl::EndsWith(address, ":0")) {
    name = absl::StrCat(address.substr(0, colon + 1), next_port_++);
    if (!servers_.contains(name)) break;
  }
  if (!servers_.emplace(name, server).second) {
    return absl::AlreadyExistsError(
        absl::StrCat("port ", address.substr(colon + 1), " of ", address.substr(0, colon), " is in use"));
  }
  return name;
}

void LoopbackNetwork::RemoveIf(absl::FunctionRef<bool(const LoopbackServer&)> gone) {
  MutexLock lock(mutex_);
  absl::erase_if(servers_, [&](const auto& entry) { return gone(*entry.second); });
}

std::shared_ptr<LoopbackServer> LoopbackNetwork::Find(const std::string& address) {
  MutexLock lock(mutex_);
  auto it = servers_.find(address);
  return it == servers_.end() ? nullptr : it->second;
}

void LoopbackNetwork::Open(const Link& link, const std::string& address) {
  link->server = Find(address);
  if (link->server == nullptr) {
    ToClient(link, [](LoopbackChannel& channel) { channel.OnBroken(); });
  } else {
    ToServer(link, [link](LoopbackListener& listener) { listener.OnOpen(link); });
  }
}

void LoopbackNetwork::SendRequest(const Link& link, const std::shared_ptr<LoopbackMessage>& message) {
  ToServer(link, [link, message](LoopbackListener& listener) {
    const size_t bulk_bytes = message->request.bulk_bytes;
    listener.OnControl(link, message);
    if (bulk_bytes > 0) listener.OnBulk(link, message, bulk_bytes);
  });
}

void LoopbackNetwork::SendReply(const Link& link, const std::shared_ptr<LoopbackMessage>& request, absl::Status status,
                                absl::string_view control, absl::Span<const ByteSpan> bulk) {
  // The client's thread gets a status of its own, as over a network: a Status shares its text with its copies.
  status = absl::Status(status.code(), status.message());
  std::optional<absl::StatusOr<Reply>> reply = request->Take(std::move(status), control, bulk);
  if (!reply) return;
  ToClient(link, [id = request->id, reply = *std::move(reply)](LoopbackChannel& channel) mutable {
    channel.OnReply(id, std::move(reply));
  });
}

void LoopbackNetwork::ToServer(const Link& link, AtServer action) {
  link->server->mailbox.Post(Guard(link, std::move(action)));
}

void LoopbackNetwork::ToClient(const Link& link, AtClient action) {
  link->client->mailbox.Post(Guard(link, std::move(action)));
}

EventLoop::Handler LoopbackNetwork::Guard(const Link& link, AtServer action) {
  return [this, link, action = std::move(action)]() mutable {
    if (link->server->end == nullptr) {
      ToClient(link, [](LoopbackChannel& channel) { channel.OnBroken(); });
    } else if (link->server_open) {
      action(*link->server->end);
    }
  };
}

EventLoop::Handler LoopbackNetwork::Guard(const Link& link, AtClient action) {
  return [link, action = std::move(action)]() mutable {
    if (link->client->end != nullptr && link->client_open) action(*link->client->end);
  };
}

}  // namespace muster
