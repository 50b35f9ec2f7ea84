#include "tests/process/testing/one_way_relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "muster/base/check.h"

namespace muster {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

// False: there is no more.
bool PassOn(int from, int to) {
  std::array<char, 65536> bytes;
  const ssize_t got = read(from, bytes.data(), bytes.size());
  for (ssize_t sent = 0; sent < got;) {
    const ssize_t more = send(to, bytes.data() + sent, static_cast<size_t>(got - sent), MSG_NOSIGNAL);
    if (more <= 0) return false;
    sent += more;
  }
  return got > 0;
}

}  // namespace

OneWayRelay::OneWayRelay(const std::string& server)
    : server_port_(std::stoi(server.substr(server.rfind(':') + 1))),
      listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  sockaddr_in address = Loopback(0);
  socklen_t length = sizeof address;
  MUSTER_CHECK(bind(listener_, reinterpret_cast<sockaddr*>(&address), length) == 0 && listen(listener_, 16) == 0);
  MUSTER_CHECK(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) == 0);
  address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  thread_ = std::thread([this] { Serve(); });
}

OneWayRelay::~OneWayRelay() {
  stopping_ = true;
  HoldAnswers(false);
  thread_.join();
  close(listener_);
  close(wake_);
}

void OneWayRelay::HoldAnswers(bool holds) {
  holds_ = holds;
  const uint64_t one = 1;
  static_cast<void>(write(wake_, &one, sizeof one));
}

void OneWayRelay::Serve() {
  std::vector<std::pair<int, int>> links;  // client, server
  while (!stopping_) {
    std::vector<pollfd> watched = {{listener_, POLLIN, 0}, {wake_, POLLIN, 0}};
    const bool holds = holds_;
    for (const auto& [client, server] : links) {
      watched.push_back({client, POLLIN, 0});
      watched.push_back({holds ? -1 : server, POLLIN, 0});
    }
    poll(watched.data(), watched.size(), -1);
    uint64_t woken = 0;
    static_cast<void>(read(wake_, &woken, sizeof woken));
    std::vector<std::pair<int, int>> open;
    for (size_t i = 0; i < links.size(); ++i) {
      const auto [client, server] = links[i];
      const bool asked = watched[2 + 2 * i].revents == 0 || PassOn(client, server);
      const bool answered = watched[3 + 2 * i].revents == 0 || PassOn(server, client);
      if (asked && answered) {
        open.push_back(links[i]);
      } else {
        close(client);
        close(server);
      }
    }
    links = std::move(open);
    if (watched[0].revents == 0) continue;
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = Loopback(server_port_);
    if (connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      links.emplace_back(client, server);
    } else {
      close(client);
      close(server);
    }
  }
  for (const auto& [client, server] : links) {
    close(client);
    close(server);
  }
}

}  // namespace muster
