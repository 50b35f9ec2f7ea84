// Stands between a ps and its clients, in tests and simulations, and passes everything on; a derived class changes one
// thing. Lives on the store's event loop.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "muster/store/service/store_service.h"

namespace muster {

class PassingHandler : public RequestHandler {
 public:
  // `inner` must outlive it.
  explicit PassingHandler(StoreService& inner) : inner_(inner) {}
  void OnConnect(ConnectionId connection, const std::string& peer) override { inner_.OnConnect(connection, peer); }
  absl::StatusOr<std::unique_ptr<BulkTarget>> PrepareBulk(const IncomingRequest& request) override {
    return inner_.PrepareBulk(request);
  }
  void Handle(IncomingRequest& request, std::unique_ptr<BulkTarget> bulk, Responder responder) override {
    inner_.Handle(request, std::move(bulk), std::move(responder));
  }
  void OnDisconnect(ConnectionId connection) override { inner_.OnDisconnect(connection); }

 protected:
  StoreService& inner_;
};

}  // namespace muster
