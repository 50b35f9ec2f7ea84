#include "muster/transport/handshake.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/check.h"
#include "muster/transport/hmac.h"
#include "muster/transport/little_endian.h"
#include "openssl/rand.h"

namespace muster {
namespace {

constexpr char kMagic[] = "MUSTER\r\n";
constexpr size_t kMagicBytes = 8;
constexpr size_t kHelloBytes = 48;
constexpr size_t kProofBytes = kHmacBytes;
constexpr size_t kVerdictBytes = 40;
constexpr size_t kMaxBuildVersion = 64;
constexpr size_t kMaxDestination = 400;  // the longest name has 253 characters

enum class Result : uint16_t {
  kAccepted = 0,
  kOtherVersion = 1,
  kOtherJob = 2,
  kBusy = 3,
  kOtherTask = 4,
  kRelayed = 5
};

// The beginning of a status page's answer to a request that it doesn't understand.
constexpr char kHttp[] = "HTTP/";
constexpr size_t kHttpBytes = sizeof(kHttp) - 1;

// The lengths include the terminating zero byte, which is part of the signed text.
constexpr char kClientLabel[] = "muster client proof 2";
constexpr char kServerLabel[] = "muster server proof 2";

enum class Sender { kClient, kServer };

struct Hello {
  uint16_t version = 0;
  uint16_t flags = 0;
  uint16_t result = 0;      // a server's
  Destination destination;  // a client's
  std::string build_version;
  size_t bytes = 0;
};

// `last`: a server's result, or the length of a client's destination.
std::string EncodeHello(const HandshakeIdentity& identity, uint16_t flags, uint16_t last, const HandshakeNonce& nonce,
                        const std::string& destination) {
  const std::string build = identity.build_version.substr(0, kMaxBuildVersion);
  std::string out(kHelloBytes, '\0');
  auto* bytes = reinterpret_cast<std::byte*>(out.data());
  std::memcpy(bytes, kMagic, kMagicBytes);
  StoreLittleEndian(identity.protocol_version, bytes + 8);
  StoreLittleEndian(flags, bytes + 10);
  StoreLittleEndian(static_cast<uint16_t>(build.size()), bytes + 12);
  StoreLittleEndian(last, bytes + 14);
  std::memcpy(bytes + 16, nonce.data(), nonce.size());
  return absl::StrCat(out, build, destination);
}

std::string ClientHello(const HandshakeIdentity& identity, const HandshakeNonce& nonce) {
  const Destination& to = identity.destination;
  const std::string text = to.address.empty() ? "" : absl::StrCat(to.address, " ", to.ends.client, " ", to.ends.server);
  // A longer name can't be resolved, so nothing was reached by it.
  const std::string sent = text.size() <= kMaxDestination ? text : "";
  return EncodeHello(identity, identity.offers, static_cast<uint16_t>(sent.size()), nonce, sent);
}

std::string ServerHello(const HandshakeIdentity& identity, uint16_t flags, Result result, const HandshakeNonce& nonce) {
  return EncodeHello(identity, flags, static_cast<uint16_t>(result), nonce, "");
}

std::string Text(ByteSpan bytes) { return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()); }

// Returns nullopt if more bytes are needed. A wrong first byte is an error at once, so that strangers are recognised
// early.
absl::StatusOr<std::optional<Hello>> DecodeHello(ByteSpan bytes, Sender sender) {
  if (std::memcmp(bytes.data(), kMagic, std::min(bytes.size(), kMagicBytes)) != 0) {
    const bool http = bytes.size() >= kHttpBytes && std::memcmp(bytes.data(), kHttp, kHttpBytes) == 0;
    return absl::FailedPreconditionError(
        http ? "it doesn't speak muster's protocol, but HTTP: open a --status_port with a browser or curl"
             : "it doesn't speak muster's protocol");
  }
  if (bytes.size() < 16) return std::optional<Hello>();
  Hello hello;
  hello.version = LoadLittleEndian<uint16_t>(&bytes[8]);
  hello.flags = LoadLittleEndian<uint16_t>(&bytes[10]);
  const size_t build_bytes = LoadLittleEndian<uint16_t>(&bytes[12]);
  const auto last = LoadLittleEndian<uint16_t>(&bytes[14]);
  const size_t destination_bytes = sender == Sender::kClient ? last : 0;
  if (sender == Sender::kServer) hello.result = last;
  if (build_bytes > kMaxBuildVersion) {
    return absl::FailedPreconditionError(absl::StrCat("its hello has a build version of ", build_bytes, " bytes"));
  }
  if (destination_bytes > kMaxDestination) {
    return absl::FailedPreconditionError(absl::StrCat("its hello has a destination of ", destination_bytes, " bytes"));
  }
  hello.bytes = kHelloBytes + build_bytes + destination_bytes;
  if (bytes.size() < hello.bytes) return std::optional<Hello>();
  for (std::byte byte : bytes.subspan(kHelloBytes, build_bytes)) {
    const char c = static_cast<char>(byte);
    hello.build_version += c >= ' ' && c <= '~' ? c : '?';
  }
  const std::string destination = Text(bytes.subspan(kHelloBytes + build_bytes, destination_bytes));
  const std::vector<std::string> words = absl::StrSplit(destination, ' ');
  if (words.size() == 3) hello.destination = {.address = words[0], .ends = {.client = words[1], .server = words[2]}};
  return std::optional<Hello>(std::move(hello));
}

// `label` includes its terminating zero byte.
template <size_t n>
std::string Proof(const JobToken& token, const char (&label)[n], const std::string& client_hello,
                  const std::string& server_hello) {
  return HmacSha256(token.secret, std::string(label, n) + client_hello + server_hello);
}

// Everybody can make the proof of an empty token, so it proves nothing.
template <size_t n>
bool IsProof(ByteSpan received, const JobToken& token, const char (&label)[n], const std::string& client_hello,
             const std::string& server_hello) {
  return !token.secret.empty() &&
         EqualInConstantTime(Proof(token, label, client_hello, server_hello), Text(received.first(kProofBytes)));
}

absl::Status OtherJob(const JobToken& token) {
  if (!token.secret.empty())
    return absl::PermissionDeniedError(
        "it belongs to another job: its job token differs from this process's (MUSTER_JOB_TOKEN)");
  return absl::PermissionDeniedError(
      "it belongs to another job or another user: set the same MUSTER_JOB_TOKEN for both, or start both as the same "
      "user on the same host (neither in a container)");
}

Handshake::Step Refused(absl::Status status) {
  Handshake::Step step;
  step.status = std::move(status);
  return step;
}

}  // namespace

HandshakeNonce RandomNonce() {
  HandshakeNonce nonce;
  MUSTER_CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(nonce.data()), static_cast<int>(nonce.size())) == 1);
  return nonce;
}

ClientHandshake::ClientHandshake(HandshakeIdentity identity, const HandshakeNonce& nonce, FindToken find)
    : identity_(std::move(identity)), find_(std::move(find)), hello_(ClientHello(identity_, nonce)) {}

Handshake::Step ClientHandshake::Advance(ByteSpan received) {
  if (!hello_sent_) {
    hello_sent_ = true;
    Step step;
    step.to_send = hello_;
    return step;
  }
  return server_hello_.empty() ? TakeServerHello(received) : TakeVerdict(received);
}

absl::Status ClientHandshake::NeedToken() {
  if (!identity_.token.secret.empty() || !find_) return absl::OkStatus();
  absl::StatusOr<JobToken> found = find_();
  if (!found.ok()) return absl::IsNotFound(found.status()) ? absl::OkStatus() : found.status();
  identity_.token = *std::move(found);
  return absl::OkStatus();
}

Handshake::Step ClientHandshake::TakeServerHello(ByteSpan received) {
  absl::StatusOr<std::optional<Hello>> hello = DecodeHello(received, Sender::kServer);
  if (!hello.ok()) return Refused(hello.status());
  if (!hello->has_value()) return {};
  const Hello& server = **hello;
  if (server.result == static_cast<uint16_t>(Result::kBusy)) {
    return Refused(absl::UnavailableError("it has too many connections"));
  }
  if (server.result != 0 || server.version != identity_.protocol_version) {
    return Refused(absl::FailedPreconditionError(absl::StrCat(
        "it speaks protocol version ", server.version, " (", server.build_version, "), this process version ",
        identity_.protocol_version, " (", identity_.build_version, "); use the same build of muster everywhere")));
  }
  if ((server.flags & ~identity_.offers) != 0) {
    return Refused(absl::FailedPreconditionError("it accepted an offer that this process didn't make"));
  }
  if (absl::Status status = NeedToken(); !status.ok()) return Refused(std::move(status));
  agreed_ = server.flags;
  server_hello_ = Text(received.first(server.bytes));
  Step step;
  step.used = server.bytes;
  step.to_send = Proof(identity_.token, kClientLabel, hello_, server_hello_);
  return step;
}

Handshake::Step ClientHandshake::TakeVerdict(ByteSpan received) {
  if (received.size() < kVerdictBytes) return {};
  const uint16_t result = LoadLittleEndian<uint16_t>(&received[0]);
  if (result == static_cast<uint16_t>(Result::kOtherJob)) return Refused(OtherJob(identity_.token));
  if (result == static_cast<uint16_t>(Result::kOtherTask)) {
    return Refused(absl::UnavailableError(
        "another task of the job answers there: a program that is none of the job's has the port and passes "
        "connections on, or a name leads to the wrong host"));
  }
  if (result == static_cast<uint16_t>(Result::kRelayed)) {
    return Refused(absl::UnavailableError(
        "something between passes the connection on: a program that is none of the job's, or a proxy or translation of "
        "addresses that you know (MUSTER_ALLOW_PROXY=1 in the environment of all tasks allows it)"));
  }
  if (result != 0) {
    return Refused(absl::FailedPreconditionError(absl::StrCat("it refuses this process; reason ", result)));
  }
  if (!IsProof(received.subspan(8, kProofBytes), identity_.token, kServerLabel, hello_, server_hello_)) {
    return Refused(absl::PermissionDeniedError("it couldn't prove that it knows this job's token (MUSTER_JOB_TOKEN)"));
  }
  Step step;
  step.used = kVerdictBytes;
  step.passed = true;
  step.agreed = agreed_;
  return step;
}

ServerHandshake::ServerHandshake(HandshakeIdentity identity, const HandshakeNonce& nonce, bool busy,
                                 AskReached ask_reached)
    : identity_(std::move(identity)), nonce_(nonce), busy_(busy), ask_reached_(std::move(ask_reached)) {}

Handshake::Step ServerHandshake::Advance(ByteSpan received) {
  return client_hello_.empty() ? TakeClientHello(received) : TakeProof(received);
}

Handshake::Step ServerHandshake::TakeClientHello(ByteSpan received) {
  absl::StatusOr<std::optional<Hello>> hello = DecodeHello(received, Sender::kClient);
  if (!hello.ok()) return Refused(hello.status());
  if (!hello->has_value()) return {};
  const Hello& client = **hello;
  Step step;
  step.used = client.bytes;
  Result result = Result::kAccepted;
  if (client.version != identity_.protocol_version) {
    result = Result::kOtherVersion;
    step.status = absl::FailedPreconditionError(
        absl::StrCat("it speaks protocol version ", client.version, " (", client.build_version, ")"));
  } else if (busy_) {
    result = Result::kBusy;
    step.status = absl::ResourceExhaustedError("too many connections");
  }
  client_hello_ = Text(received.first(client.bytes));
  destination_ = client.destination;
  agreed_ = result == Result::kAccepted ? client.flags & identity_.offers : 0;
  server_hello_ = ServerHello(identity_, agreed_, result, nonce_);
  step.to_send = server_hello_;
  return step;
}

Handshake::Step ServerHandshake::TakeProof(ByteSpan received) {
  if (received.size() < kProofBytes) return {};
  Step step;
  step.used = kProofBytes;
  step.to_send.assign(kVerdictBytes, '\0');
  auto* verdict = reinterpret_cast<std::byte*>(step.to_send.data());
  if (!IsProof(received.first(kProofBytes), identity_.token, kClientLabel, client_hello_, server_hello_)) {
    StoreLittleEndian(static_cast<uint16_t>(Result::kOtherJob), verdict);
    step.status = absl::PermissionDeniedError("it doesn't know this job's token");
    return step;
  }
  // The client gets no proof, so who has passed the connection on can't pass as the server that the client meant.
  const Reached reached = ask_reached_ ? ask_reached_(destination_) : Reached::kWhoWasMeant;
  if (reached != Reached::kWhoWasMeant) {
    const bool is_other = reached == Reached::kAnotherTask;
    StoreLittleEndian(static_cast<uint16_t>(is_other ? Result::kOtherTask : Result::kRelayed), verdict);
    step.status = absl::PermissionDeniedError(
        is_other ? absl::StrCat("it meant the task at ", destination_.address)
                 : absl::StrCat("it is at ", destination_.ends.client, ", and something else passes it on"));
    return step;
  }
  const std::string proof = Proof(identity_.token, kServerLabel, client_hello_, server_hello_);
  std::memcpy(verdict + 8, proof.data(), proof.size());
  step.passed = true;
  step.agreed = agreed_;
  return step;
}

}  // namespace muster
