// The transport between two processes on one host. Across hosts it is always TCP.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace muster {

enum class TransportChoice : uint8_t {
  kAuto,  // shared memory if the other end wants it, too
  kTcp,
};

// Accepts "auto" and "tcp"; nullopt for anything else.
inline std::optional<TransportChoice> ParseTransportChoice(std::string_view name) {
  if (name == "auto") return TransportChoice::kAuto;
  if (name == "tcp") return TransportChoice::kTcp;
  return std::nullopt;
}

}  // namespace muster
