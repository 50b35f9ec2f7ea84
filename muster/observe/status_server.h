// The status page of a task, over HTTP: `/` for people, `/status` as JSON, `/metrics` for Prometheus. It only asks:
// what is shown comes from a function, which is called on the server's own threads and says how things are without
// stopping anybody. A process with such a page ignores SIGPIPE: a reader that goes away is no reason to die. Start and
// stop on one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "muster/base/net/status_address.h"

namespace muster {

struct StatusSource {
  std::string title;                                    // "worker:0"
  std::function<absl::StatusOr<std::string>()> status;  // JSON. Unavailable: not now
  // From what `status` gave: for people, plain text; for Prometheus.
  std::function<absl::StatusOr<std::string>(const std::string& status)> text;
  std::function<absl::StatusOr<std::string>(const std::string& status)> metrics;
};

class StatusServer {
 public:
  // InvalidArgument: that address can't be had (another process listens there).
  static absl::StatusOr<std::unique_ptr<StatusServer>> Start(const StatusAddress& address, StatusSource source);
  ~StatusServer();  // stops; waits for the answers under way
  StatusServer(const StatusServer&) = delete;
  StatusServer& operator=(const StatusServer&) = delete;

  // "http://127.0.0.1:9100/"
  const std::string& url() const { return url_; }

 private:
  class Http;
  explicit StatusServer(std::unique_ptr<Http> http, std::string url);

  const std::unique_ptr<Http> http_;
  const std::string url_;
};

}  // namespace muster
