// Both ends of the handshake as state machines over bytes (docs/wire_format.md, section 1). The ends prove to each
// other that they belong to one job and speak one protocol. No socket, no clock. Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "muster/base/bytes.h"
#include "muster/base/version.h"
#include "muster/transport/task_addresses.h"
#include "muster/transport/transport.h"

namespace muster {

inline constexpr uint16_t kProtocolVersion = 2;

// Flags of the hello messages.
inline constexpr uint16_t kOfferSharedMemory = 2;

using HandshakeNonce = std::array<std::byte, 32>;
HandshakeNonce RandomNonce();

struct HandshakeIdentity {
  JobToken token;  // an end without one passes no handshake
  uint16_t protocol_version = kProtocolVersion;
  std::string build_version = std::string("muster ") + kMusterVersion;  // at most 64 characters
  uint16_t offers = 0;                                                  // a server's: the offers that it accepts
  Destination destination = {};                                         // a client's
};

class Handshake {
 public:
  virtual ~Handshake() = default;

  struct Step {
    size_t used = 0;      // consumed bytes of `received`
    std::string to_send;  // must be sent even if `status` is an error: it tells the peer why
    bool passed = false;
    uint16_t agreed = 0;  // when passed: the offers that both ends support
    absl::Status status;  // an error ends the connection
  };
  // `received` holds all unused bytes so far; it may hold more than needed. A step that uses nothing, sends nothing,
  // hasn't passed and has no error waits for more bytes. Not called again after `passed` or an error. The client's
  // errors are PermissionDenied, FailedPrecondition and Unavailable (the server is busy, or another one than the client
  // meant, or none directly), as in channel.h, without the peer's name.
  virtual Step Advance(ByteSpan received) = 0;
  // The client's hello and the server's as they were sent, once both are known. With the job's token they make keys for
  // what follows that no other connection has.
  virtual std::string hellos() const = 0;
};

class ClientHandshake final : public Handshake {
 public:
  // Finds the token of a job that was given none. NotFound: there is none to be found, and the server will refuse.
  using FindToken = absl::AnyInvocable<absl::StatusOr<JobToken>()>;

  // `find` is called, if the identity has no token, once the server's hello has come: by then the server has published
  // what is looked for.
  ClientHandshake(HandshakeIdentity identity, const HandshakeNonce& nonce, FindToken find = nullptr);
  Step Advance(ByteSpan received) override;  // the first call, with nothing received, makes the hello
  std::string hellos() const override { return hello_ + server_hello_; }

 private:
  Step TakeServerHello(ByteSpan received);
  Step TakeVerdict(ByteSpan received);
  [[nodiscard]] absl::Status NeedToken();

  HandshakeIdentity identity_;  // constant but for the token
  FindToken find_;
  const std::string hello_;
  bool hello_sent_ = false;
  std::string server_hello_;  // empty until received
  uint16_t agreed_ = 0;
};

class ServerHandshake final : public Handshake {
 public:
  // Returns whom a client with this destination has reached.
  using AskReached = std::function<Reached(const Destination&)>;

  // `busy`: refuse, because there are too many connections. `ask_reached` is asked about a client that has proven that
  // it belongs to the job; null: every destination is this server's.
  ServerHandshake(HandshakeIdentity identity, const HandshakeNonce& nonce, bool busy = false,
                  AskReached ask_reached = nullptr);
  Step Advance(ByteSpan received) override;
  std::string hellos() const override { return client_hello_ + server_hello_; }

 private:
  Step TakeClientHello(ByteSpan received);
  Step TakeProof(ByteSpan received);

  const HandshakeIdentity identity_;
  const HandshakeNonce nonce_;
  const bool busy_;
  const AskReached ask_reached_;
  Destination destination_;
  std::string client_hello_;  // empty until received
  std::string server_hello_;
  uint16_t agreed_ = 0;
};

}  // namespace muster
