// What a stranger may send to the port. Any bytes as a frame header: it fails or is unchanged. Any bytes at each stage
// of the handshake: no peer passes without knowing the token. A handshake between two peers that know it, with
// something changed on the way: never passed by both, so a man in the middle can't change what they agree on.
#include <algorithm>
#include <cstdint>
#include <string>

#include "muster/base/bytes.h"
#include "muster/base/check.h"
#include "muster/transport/frame.h"
#include "muster/transport/handshake.h"

namespace muster {
namespace {

void FuzzFrameHeader(ByteSpan input) {
  if (input.size() < kFrameHeaderBytes) return;
  const auto bytes = input.first<kFrameHeaderBytes>();
  const auto header =
      DecodeFrameHeader(bytes, {.max_control_bytes = 1 << 20, .max_bulk_bytes = 1 << 30, .beside = true});
  if (!header.ok()) return;
  MUSTER_CHECK(header->control_bytes <= 1 << 20 && header->bulk_bytes <= 1 << 30);
  FrameHeaderBytes again;
  EncodeFrameHeader(*header, again);
  const auto decoded = DecodeFrameHeader(again, {.beside = true});
  MUSTER_CHECK(decoded.ok() && decoded->type == header->type && decoded->request_id == header->request_id &&
               decoded->time_left == header->time_left && decoded->code == header->code &&
               decoded->beside == header->beside);
}

// Returns whether the handshake passed.
bool Feed(Handshake& handshake, ByteSpan input) {
  while (true) {
    const Handshake::Step step = handshake.Advance(input);
    MUSTER_CHECK(step.used <= input.size());
    if (step.passed || !step.status.ok()) return step.passed;
    if (step.used == 0 && step.to_send.empty()) return false;
    input = input.subspan(step.used);
  }
}

void FuzzStranger(ByteSpan input) {
  ServerHandshake server({.token = {"secret"}}, HandshakeNonce{});
  MUSTER_CHECK(!Feed(server, input));
  ClientHandshake client({.token = {"secret"}}, HandshakeNonce{});
  MUSTER_CHECK(!Feed(client, input));
}

ByteSpan Bytes(const std::string& text) { return AsBytes(text.data(), text.size()); }

// Returns one side's answer to `message` after changing it by the bytes of `change`.
std::string Exchange(Handshake& side, std::string message, ByteSpan change, bool* changed, bool* passed) {
  for (size_t i = 0; i < std::min(message.size(), change.size()); ++i) {
    message[i] = static_cast<char>(message[i] ^ static_cast<char>(change[i]));
    *changed |= change[i] != std::byte{0};
  }
  const Handshake::Step step = side.Advance(Bytes(message));
  *passed = step.passed;
  return step.status.ok() ? step.to_send : "";
}

void FuzzBetween(ByteSpan input) {
  const HandshakeNonce client_nonce{std::byte{1}}, server_nonce{std::byte{2}};
  ClientHandshake client(
      {.token = {"secret"}, .destination = {.address = "h:1", .ends = {.client = "[::1]:5", .server = "[::1]:1"}}},
      client_nonce);
  ServerHandshake server({.token = {"secret"}}, server_nonce);
  const size_t quarter = input.size() / 4;
  bool changed = false, client_passed = false, server_passed = false, none = false;
  const std::string hello = client.Advance({}).to_send;
  const std::string server_hello = Exchange(server, hello, input.first(quarter), &changed, &none);
  if (server_hello.empty()) return;
  const std::string proof = Exchange(client, server_hello, input.subspan(quarter, quarter), &changed, &none);
  if (proof.empty()) return;
  const std::string verdict = Exchange(server, proof, input.subspan(2 * quarter, quarter), &changed, &server_passed);
  if (!server_passed) return;
  MUSTER_CHECK(!changed);
  // Only the verdict's reserved bytes aren't covered by a proof.
  Exchange(client, verdict, input.subspan(3 * quarter, quarter), &changed, &client_passed);
  MUSTER_CHECK(client_passed || changed);
}

}  // namespace
}  // namespace muster

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const muster::ByteSpan input = muster::AsBytes(data, size);
  muster::FuzzFrameHeader(input);
  muster::FuzzStranger(input);
  muster::FuzzBetween(input);
  return 0;
}
