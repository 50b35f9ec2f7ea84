#include "muster/launch/watch/page_reader.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/base/absl_view.h"
#include "muster/base/clock.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

absl::Status PageUnavailable(int error) {
  return absl::UnavailableError(absl::StrCat("the page: ", std::generic_category().message(error)));
}

// Waits until `socket` is ready for `events`, or has ended.
absl::Status AwaitSocket(int socket, short events, absl::Time deadline) {
  for (;;) {
    pollfd polled = {socket, events, 0};
    const timespec left = absl::ToTimespec(std::max(deadline - RealClock().Now(), absl::ZeroDuration()));
    const int ready = ppoll(&polled, 1, &left, nullptr);
    // A page that sends byte by byte is always ready; the deadline holds for it, too.
    const bool is_late = RealClock().Now() > deadline;
    if (ready > 0 && !is_late) return absl::OkStatus();
    if (ready == 0 || is_late) return absl::DeadlineExceededError("the page didn't answer in time");
    if (errno != EINTR) return PageUnavailable(errno);
  }
}

bool IsTransient(int error) { return error == EAGAIN || error == EINTR; }

absl::Status SendAll(int socket, std::string_view bytes, absl::Time deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && !IsTransient(errno)) return PageUnavailable(errno);
    if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
    if (sent < 0) RETURN_IF_ERROR(AwaitSocket(socket, POLLOUT, deadline));
  }
  return absl::OkStatus();
}

// Reads until the other end closes.
absl::StatusOr<std::string> ReceiveAll(int socket, size_t max_bytes, absl::Time deadline) {
  std::string received;
  std::array<char, 16384> part;
  for (;;) {
    RETURN_IF_ERROR(AwaitSocket(socket, POLLIN, deadline));
    const ssize_t size = recv(socket, part.data(), part.size(), 0);
    if (size == 0) return received;
    if (size < 0 && !IsTransient(errno)) return PageUnavailable(errno);
    if (size < 0) continue;
    if (static_cast<size_t>(size) > max_bytes - received.size())
      return absl::ResourceExhaustedError(absl::StrCat("the page has more than ", max_bytes, " bytes"));
    received.append(part.data(), static_cast<size_t>(size));
  }
}

absl::StatusOr<sockaddr_in> LoopbackAddress(std::string_view address) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  sockaddr_in found = {};
  found.sin_family = AF_INET;
  if (colon == std::string_view::npos || !absl::SimpleAtoi(AbslView(address.substr(colon + 1)), &port) || port == 0 ||
      port > 65535 || inet_pton(AF_INET, std::string(address.substr(0, colon)).c_str(), &found.sin_addr) != 1 ||
      ntohl(found.sin_addr.s_addr) >> 24 != 127)
    return absl::InvalidArgumentError(
        absl::StrCat("'", AbslView(address), "' is no address of a page; accepted: 127.0.0.1:PORT"));
  found.sin_port = htons(static_cast<uint16_t>(port));
  return found;
}

// Takes a line off the front of `head`.
absl::string_view TakeHeaderLine(absl::string_view& head) {
  const size_t end = head.find("\r\n");
  const absl::string_view line = head.substr(0, end);
  head.remove_prefix(end == absl::string_view::npos ? head.size() : end + 2);
  return line;
}

absl::Status NoAnswer(std::string_view why) {
  return absl::DataLossError(absl::StrCat("the page's answer ", AbslView(why)));
}

}  // namespace

absl::StatusOr<std::string> BodyOfHttpAnswer(std::string_view answer) {
  const size_t head_end = answer.find("\r\n\r\n");
  if (head_end == std::string_view::npos) return NoAnswer("has no end of its headers");
  absl::string_view head = AbslView(answer.substr(0, head_end));
  const std::string_view body = answer.substr(head_end + 4);
  // "HTTP/1.1 200 OK"; the words behind the number may be missing.
  const absl::string_view first = TakeHeaderLine(head);
  if (!absl::StartsWith(first, "HTTP/1.")) return NoAnswer("isn't HTTP");
  const size_t space = first.find(' ');
  if (space == absl::string_view::npos || first.substr(space + 1, 3) != "200" ||
      (first.size() > space + 4 && first[space + 4] != ' '))
    return NoAnswer("isn't 200");
  while (!head.empty()) {
    const absl::string_view line = TakeHeaderLine(head);
    const size_t colon = line.find(':');
    if (colon == absl::string_view::npos) return NoAnswer("has a header without a colon");
    const absl::string_view name = line.substr(0, colon);
    const absl::string_view value = absl::StripAsciiWhitespace(line.substr(colon + 1));
    if (absl::EqualsIgnoreCase(name, "transfer-encoding")) return NoAnswer("is in chunks, which HTTP/1.0 hasn't");
    uint64_t length = 0;
    if (absl::EqualsIgnoreCase(name, "content-length") && (!absl::SimpleAtoi(value, &length) || length != body.size()))
      return NoAnswer("is shorter or longer than it says");
  }
  return std::string(body);
}

absl::StatusOr<std::string> ReadPageOver(int connection, std::string_view path, const PageLimits& limits) {
  const absl::Time deadline = RealClock().Now() + limits.patience;
  RETURN_IF_ERROR(SendAll(connection, absl::StrCat("GET ", AbslView(path), " HTTP/1.0\r\n\r\n"), deadline));
  ASSIGN_OR_RETURN(const std::string answer, ReceiveAll(connection, limits.max_bytes, deadline));
  return BodyOfHttpAnswer(answer);
}

absl::StatusOr<std::string> ReadPage(std::string_view address, std::string_view path, const PageLimits& limits) {
  const absl::Time deadline = RealClock().Now() + limits.patience;
  ASSIGN_OR_RETURN(const sockaddr_in server, LoopbackAddress(address));
  const int connection = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (connection < 0) return PageUnavailable(errno);
  const absl::Cleanup close_it = [connection] { close(connection); };
  if (connect(connection, reinterpret_cast<const sockaddr*>(&server), sizeof server) != 0) {
    if (errno != EINPROGRESS) return PageUnavailable(errno);
    RETURN_IF_ERROR(AwaitSocket(connection, POLLOUT, deadline));
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(connection, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return PageUnavailable(error);
  }
  return ReadPageOver(connection, path, {.patience = deadline - RealClock().Now(), .max_bytes = limits.max_bytes});
}

}  // namespace muster
