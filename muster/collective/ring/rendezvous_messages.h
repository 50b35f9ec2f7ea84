// The messages of a rendezvous (docs/collectives.md): fixed little-endian numbers, byte by byte. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "muster/collective/shm/shm_group_listener.h"
#include "muster/transport/little_endian.h"

namespace muster {

class NumbersOut {
 public:
  NumbersOut& U32(uint32_t value) {
    std::byte bytes[4];
    StoreLittleEndian(value, bytes);
    text_.append(reinterpret_cast<const char*>(bytes), sizeof bytes);
    return *this;
  }
  std::string text() const { return text_; }

 private:
  std::string text_;
};

inline uint32_t U32At(std::string_view text, size_t at) {
  return LoadLittleEndian<uint32_t>(reinterpret_cast<const std::byte*>(text.data()) + at);
}

// To rank 0: the sender's rank, and which group it expects.
struct EnterRequest {
  uint32_t rank = 0;
  uint32_t size = 0;
  uint32_t choice = 0;
};
inline std::string Encode(const EnterRequest& message) {
  return NumbersOut().U32(message.rank).U32(message.size).U32(message.choice).text();
}
inline bool Decode(std::string_view text, EnterRequest& message) {
  if (text.size() < 12) return false;
  message = {U32At(text, 0), U32At(text, 4), U32At(text, 8)};
  return true;
}

// Sent when all ranks are there: rank 0's unix socket; empty if it has none.
struct EnterReply {
  std::string ticket;  // kShmTicketBytes
  std::string socket;
};
inline std::string Encode(const EnterReply& message) { return message.ticket + message.socket; }
inline bool Decode(std::string_view text, EnterReply& message) {
  if (text.empty()) return true;
  if (text.size() <= kShmTicketBytes) return false;
  message = {std::string(text.substr(0, kShmTicketBytes)), std::string(text.substr(kShmTicketBytes))};
  return true;
}

// To rank 0: whether this rank has connected to that socket.
struct AgreeRequest {
  uint32_t rank = 0;
  uint32_t attached = 0;
};
inline std::string Encode(const AgreeRequest& message) {
  return NumbersOut().U32(message.rank).U32(message.attached).text();
}
inline bool Decode(std::string_view text, AgreeRequest& message) {
  if (text.size() < 8) return false;
  message = {U32At(text, 0), U32At(text, 4)};
  return true;
}

struct AgreeReply {
  uint32_t shared_memory = 0;  // 1: this rank's member is on its way through the socket
};
inline std::string Encode(const AgreeReply& message) { return NumbersOut().U32(message.shared_memory).text(); }
inline bool Decode(std::string_view text, AgreeReply& message) {
  if (text.size() < 4) return false;
  message = {U32At(text, 0)};
  return true;
}

}  // namespace muster
