// A request that a ps is about to answer. Used on the store's loop.
#pragma once

#include "muster/base/bytes.h"
#include "muster/store/messages/store_methods.h"
#include "muster/transport/listener.h"

namespace muster {

// A request on its way to its handler, and where its answer goes.
struct IncomingCall {
  StoreMethod method;
  ConnectionId connection;
  ByteSpan bulk;
  Responder responder;
};

}  // namespace muster
