// The transports that a user chooses from, for what a task and its peers talk through. A new one is its folder, an
// enumerator here and a line in transport_choice.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "muster/transport/transport.h"

namespace muster {

class TcpEventLoop;

enum class TransportChoice : uint8_t {
  kAuto,  // TCP, or shared memory between two processes of one host if both want it
  kTcp,   // TCP alone: also where so little is said that memory for it doesn't pay
};

// "auto", "tcp"; nullopt for anything else.
std::optional<TransportChoice> ParseTransportChoice(std::string_view name);

// `loop` must outlive the transport, its channels and its listeners.
std::unique_ptr<Transport> MakeTransport(TransportChoice choice, TcpEventLoop& loop, JobToken token = {});

}  // namespace muster
