// The status page of a task, over HTTP: `/` for people, `/status` as JSON, `/metrics` for Prometheus. It only reads:
// the contents come from a function, which is called on the server's own threads and reports the state without stopping
// anything. Start and stop on one thread.
//
// A page that only this host reaches is shown to every user of the host, but not to pages of other sites that a browser
// there has loaded: a name in the Host header that isn't the host's own is refused (DNS rebinding). Beyond the host a
// request must carry the job token, as `Authorization: Bearer TOKEN` or `?token=TOKEN`.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "muster/base/net/status_address.h"
#include "muster/observe/http_door.h"

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
  // `token`: the job's; empty if it has none. InvalidArgument: it can't listen at that address (another process does).
  // PermissionDenied: other hosts reach the address, and there is no token.
  static absl::StatusOr<std::unique_ptr<StatusServer>> Start(const StatusAddress& address, StatusSource source,
                                                             const std::string& token);
  ~StatusServer();  // stops, after finishing the answers in progress
  StatusServer(const StatusServer&) = delete;
  StatusServer& operator=(const StatusServer&) = delete;

  // Returns "http://127.0.0.1:9100/".
  const std::string& url() const { return url_; }

 private:
  explicit StatusServer(std::unique_ptr<HttpDoor> door, std::string url);

  const std::unique_ptr<HttpDoor> door_;
  const std::string url_;
};

}  // namespace muster
