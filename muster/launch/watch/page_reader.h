// Reads a task's status page: one GET with HTTP/1.0 (RFC 1945), whose answer ends where the server closes. The port may
// belong to any program by now, so the answer is taken for any bytes. Functions without state, thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster {

struct PageLimits {
  absl::Duration patience = absl::Milliseconds(200);  // for the whole exchange
  size_t max_bytes = 1 << 20;                         // of the answer with its headers
};

// Returns the body of `path` ("/status") at `address`, "127.0.0.1:9100": an IPv4 address of this host's loopback
// network. Blocks as long as `limits.patience` at most. InvalidArgument: the address has another form. Unavailable:
// nothing listens there. DeadlineExceeded. ResourceExhausted: the answer is longer. DataLoss: it isn't a whole answer
// of HTTP with status 200.
absl::StatusOr<std::string> ReadPage(std::string_view address, std::string_view path, const PageLimits& limits = {});

// The same over `connection`, a connected socket that doesn't block and remains the caller's.
absl::StatusOr<std::string> ReadPageOver(int connection, std::string_view path, const PageLimits& limits = {});

// Returns the body of the answer to a GET. DataLoss: it is cut, in chunks, no HTTP, or its status isn't 200.
absl::StatusOr<std::string> BodyOfHttpAnswer(std::string_view answer);

}  // namespace muster
