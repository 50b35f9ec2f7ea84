// The status page of a task, over HTTP: `/` for people, `/status` as JSON, `/metrics` for Prometheus. It only reads:
// the contents come from a function, which is called on the server's own threads and reports the state without stopping
// anything. A process with such a page ignores SIGPIPE, because a reader that goes away must not kill it. Start and
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
  // These convert the result of `status`: to plain text for people, and for Prometheus.
  std::function<absl::StatusOr<std::string>(const std::string& status)> text;
  std::function<absl::StatusOr<std::string>(const std::string& status)> metrics;
};

class StatusServer {
 public:
  // InvalidArgument: it can't listen at that address (another process does).
  static absl::StatusOr<std::unique_ptr<StatusServer>> Start(const StatusAddress& address, StatusSource source);
  ~StatusServer();  // stops, after finishing the answers in progress
  StatusServer(const StatusServer&) = delete;
  StatusServer& operator=(const StatusServer&) = delete;

  // Returns "http://127.0.0.1:9100/".
  const std::string& url() const { return url_; }

 private:
  class Http;
  explicit StatusServer(std::unique_ptr<Http> http, std::string url);

  const std::unique_ptr<Http> http_;
  const std::string url_;
};

}  // namespace muster
