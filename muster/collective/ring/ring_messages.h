// The requests between neighbours of a ring (docs/collectives.md, "Ring"), little-endian, byte by byte. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "muster/collective/collective_call.h"
#include "muster/transport/little_endian.h"

namespace muster {

enum class RingMethod : uint16_t {
  kWatch = 17,  // from the next rank, once: answered when this rank ends, with the reason
  kPiece = 18,  // from the next rank: requests a piece of an operation, answered when it is ready
  kEnd = 19,    // from the next rank: it ends, with the reason
};

// Identifies a piece. The message has 48 bytes.
struct PieceRequest {
  uint64_t number = 0;  // the operation's
  uint64_t stage = 0;
  uint64_t piece = 0;
  CollectiveCall call;
};

inline std::string Encode(const PieceRequest& message) {
  std::string text(48, '\0');
  auto* at = reinterpret_cast<std::byte*>(text.data());
  StoreLittleEndian(message.number, at);
  StoreLittleEndian(message.stage, at + 8);
  StoreLittleEndian(message.piece, at + 16);
  StoreLittleEndian(static_cast<uint32_t>(message.call.operation), at + 24);
  StoreLittleEndian(message.call.dtype, at + 28);
  StoreLittleEndian(message.call.reduction, at + 32);
  StoreLittleEndian(message.call.root, at + 36);
  StoreLittleEndian(message.call.bytes, at + 40);
  return text;
}

inline bool Decode(std::string_view text, PieceRequest& message) {
  if (text.size() < 48) return false;
  const auto* at = reinterpret_cast<const std::byte*>(text.data());
  message.number = LoadLittleEndian<uint64_t>(at);
  message.stage = LoadLittleEndian<uint64_t>(at + 8);
  message.piece = LoadLittleEndian<uint64_t>(at + 16);
  message.call = {static_cast<CollectiveOperation>(LoadLittleEndian<uint32_t>(at + 24)),
                  LoadLittleEndian<uint32_t>(at + 28), LoadLittleEndian<uint32_t>(at + 32),
                  LoadLittleEndian<uint32_t>(at + 36), LoadLittleEndian<uint64_t>(at + 40)};
  return true;
}

// Why a rank ends: a status code, then the message.
inline std::string Encode(const absl::Status& why) {
  return std::string(1, static_cast<char>(why.code())) + std::string(why.message());
}
inline absl::Status DecodeEnd(std::string_view text) {
  if (text.empty()) return absl::UnavailableError("a rank has ended without a word");
  const auto code = static_cast<absl::StatusCode>(text[0]);
  return code == absl::StatusCode::kOk ? absl::InternalError(std::string(text.substr(1)))
                                       : absl::Status(code, std::string(text.substr(1)));
}

}  // namespace muster
