// Serves HTTP requests of a few short-lived clients, without trusting any of them: anybody who reaches the port may
// connect and then send nothing, send slowly, or not read. One thread handles all connections and never waits for one
// of them; two others make the answers. The number of connections is limited, and when another one comes the oldest
// that hasn't sent its request yet makes room, so idle connections keep nobody out. Open, serve and destroy on one
// thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/net/status_address.h"
#include "muster/observe/http_request.h"

namespace muster {

struct HttpDoorOptions {
  size_t max_connections = 32;
  size_t max_request_bytes = 8192;  // a longer one is answered with 431
  // For a client to send its request, and to read the answer.
  absl::Duration request_patience = absl::Seconds(1);
  absl::Duration answer_patience = absl::Seconds(5);
};

class HttpDoor {
 public:
  // InvalidArgument: it can't listen there, because another process does, say.
  static absl::StatusOr<std::unique_ptr<HttpDoor>> Open(const StatusAddress& address,
                                                        const HttpDoorOptions& options = {});
  ~HttpDoor();  // stops, after the answers that are being made
  HttpDoor(const HttpDoor&) = delete;
  HttpDoor& operator=(const HttpDoor&) = delete;

  int port() const;
  // Whether only processes of this host reach it.
  bool is_loopback() const;

  // Called on the door's threads, on two at once.
  using Answer = std::function<HttpAnswer(const HttpRequest& request)>;
  // Begins to serve; call once. Clients that have come before wait.
  void Serve(Answer answer);

 private:
  class Impl;
  explicit HttpDoor(std::unique_ptr<Impl> impl);

  const std::unique_ptr<Impl> impl_;
};

}  // namespace muster
