#include "muster/transport/handshake.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "openssl/evp.h"
#include "openssl/hmac.h"

namespace muster::handshake_test {
namespace {

using ::testing::HasSubstr;

const HandshakeNonce kClientNonce{std::byte{1}};
const HandshakeNonce kServerNonce{std::byte{2}};

struct Outcome {
  absl::Status client;
  absl::Status server;
  bool client_passed = false;
  bool server_passed = false;
  std::vector<std::string> sent;  // the messages in order
};

// Feeds one side what the other has sent, `piece` bytes at a time.
bool Deliver(Handshake& side, std::string& inbox, size_t piece, std::string& outbox, absl::Status& status) {
  bool passed = false;
  for (size_t end = 0; status.ok() && !passed;) {
    end = std::min(inbox.size(), end + piece);
    Handshake::Step step = side.Advance(AsBytes(inbox.data(), end));
    inbox.erase(0, step.used);
    end -= step.used;
    outbox += step.to_send;
    status = step.status;
    passed = step.passed;
    if (step.used == 0 && step.to_send.empty() && end == inbox.size()) break;
  }
  return passed;
}

Outcome Shake(HandshakeIdentity client_identity, HandshakeIdentity server_identity, size_t piece = 1000,
              bool busy = false, ServerHandshake::AskReached ask_reached = nullptr) {
  ClientHandshake client(std::move(client_identity), kClientNonce);
  ServerHandshake server(std::move(server_identity), kServerNonce, busy, std::move(ask_reached));
  Outcome outcome;
  std::string to_server, to_client;
  for (int turn = 0; turn < 4; ++turn) {
    if (outcome.client.ok() && !outcome.client_passed) {
      outcome.client_passed = Deliver(client, to_client, piece, to_server, outcome.client);
      if (!to_server.empty()) outcome.sent.push_back(to_server);
    }
    if (outcome.server.ok() && !outcome.server_passed) {
      outcome.server_passed = Deliver(server, to_server, piece, to_client, outcome.server);
      if (!to_client.empty()) outcome.sent.push_back(to_client);
    }
  }
  if (outcome.client_passed && outcome.server_passed) {
    EXPECT_EQ(client.hellos(), server.hellos());
    EXPECT_EQ(client.hellos(), outcome.sent[0] + outcome.sent[1]);
    EXPECT_EQ(to_server + to_client, "") << "bytes were left over";
  }
  return outcome;
}

HandshakeIdentity Identity(const std::string& secret) { return {.token = {secret}}; }
HandshakeIdentity To(const std::string& address) {
  return {.token = {"token"}, .destination = {.address = address, .ends = {.client = "[::1]:5", .server = "[::1]:2"}}};
}

TEST(HandshakeTest, TwoOfOneJobPassInPiecesOfAnySize) {
  for (size_t piece : {1, 7, 48, 1000}) {
    const Outcome outcome = Shake(Identity("token"), Identity("token"), piece);
    EXPECT_TRUE(outcome.client_passed) << outcome.client;
    EXPECT_TRUE(outcome.server_passed) << outcome.server;
  }
}

TEST(HandshakeTest, AnEmptyTokenPassesNoHandshake) {
  const Outcome outcome = Shake(Identity(""), Identity(""));
  EXPECT_FALSE(outcome.server_passed);
  EXPECT_EQ(outcome.client.code(), absl::StatusCode::kPermissionDenied) << outcome.client;
  EXPECT_THAT(std::string(outcome.client.message()), HasSubstr("same user on the same host"));
  EXPECT_THAT(std::string(outcome.client.message()), HasSubstr("MUSTER_JOB_TOKEN"));
}

// A stranger that a client without a token has reached can make the proof of an empty one.
TEST(HandshakeTest, AClientWithoutATokenBelievesNoProof) {
  ClientHandshake client(Identity(""), kClientNonce);
  ServerHandshake server(Identity("token"), kServerNonce);
  const std::string to_server = client.Advance({}).to_send;
  const std::string to_client = server.Advance(AsBytes(to_server.data(), to_server.size())).to_send;
  EXPECT_EQ(client.Advance(AsBytes(to_client.data(), to_client.size())).to_send.size(), 32);
  std::string signed_text("muster server proof 2\0", 22);
  signed_text += to_server + to_client;
  unsigned char proof[32];
  HMAC(EVP_sha256(), "", 0, reinterpret_cast<const unsigned char*>(signed_text.data()), signed_text.size(), proof,
       nullptr);
  const std::string accepted = std::string(8, '\0') + std::string(reinterpret_cast<char*>(proof), sizeof proof);
  const Handshake::Step step = client.Advance(AsBytes(accepted.data(), accepted.size()));
  EXPECT_FALSE(step.passed);
  EXPECT_EQ(step.status.code(), absl::StatusCode::kPermissionDenied) << step.status;
}

TEST(HandshakeTest, ATokenIsLookedForOnceTheServerHasAnswered) {
  int asked = 0;
  ClientHandshake client(Identity(""), kClientNonce, [&asked]() -> absl::StatusOr<JobToken> {
    ++asked;
    return JobToken{"found"};
  });
  ServerHandshake server(Identity("found"), kServerNonce);
  std::string to_server = client.Advance({}).to_send;
  EXPECT_EQ(asked, 0);
  const std::string hello = server.Advance(AsBytes(to_server.data(), to_server.size())).to_send;
  to_server = client.Advance(AsBytes(hello.data(), hello.size())).to_send;
  EXPECT_EQ(asked, 1);
  const std::string verdict = server.Advance(AsBytes(to_server.data(), to_server.size())).to_send;
  EXPECT_TRUE(client.Advance(AsBytes(verdict.data(), verdict.size())).passed);
  ClientHandshake unlucky(Identity(""), kClientNonce,
                          []() -> absl::StatusOr<JobToken> { return absl::FailedPreconditionError("a bad folder"); });
  EXPECT_TRUE(unlucky.Advance({}).status.ok());
  EXPECT_EQ(unlucky.Advance(AsBytes(hello.data(), hello.size())).status, absl::FailedPreconditionError("a bad folder"));
}

TEST(HandshakeTest, TheMessagesAreThoseOfTheDocument) {
  HandshakeIdentity identity = Identity("token");
  identity.build_version = "b 1";
  HandshakeIdentity client = identity;
  client.destination = {.address = "h:2222", .ends = {.client = "10.0.0.2:5", .server = "10.0.0.1:2"}};
  const Outcome outcome = Shake(client, identity);
  ASSERT_EQ(outcome.sent.size(), 4);
  std::string nonce(32, '\0');
  nonce[0] = 1;
  EXPECT_EQ(outcome.sent[0],
            std::string("MUSTER\r\n\x02\x00\x00\x00\x03\x00\x1C\x00", 16) + nonce + "b 1h:2222 10.0.0.2:5 10.0.0.1:2");
  nonce[0] = 2;
  EXPECT_EQ(outcome.sent[1], std::string("MUSTER\r\n\x02\x00\x00\x00\x03\x00\x00\x00", 16) + nonce + "b 1");
  EXPECT_EQ(outcome.sent[2].size(), 32);
  EXPECT_EQ(outcome.sent[3].size(), 40);
  EXPECT_EQ(outcome.sent[3].substr(0, 8), std::string(8, '\0'));
  EXPECT_NE(outcome.sent[2], outcome.sent[3].substr(8)) << "each side proves it in its own words";
}

TEST(HandshakeTest, AnotherJobIsRefusedAndTheClientKnowsWhy) {
  const Outcome outcome = Shake(Identity("a"), Identity("b"));
  EXPECT_EQ(outcome.client.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(outcome.client.message()), HasSubstr("another job"));
  EXPECT_EQ(outcome.server.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(outcome.sent[3].substr(8), std::string(32, '\0')) << "a stranger gets no proof to work on";
}

TEST(HandshakeTest, AnotherVersionIsRefusedNamingBothBuilds) {
  HandshakeIdentity old = Identity("a");
  old.protocol_version = 7;
  old.build_version = "muster 9.9.9";
  for (bool client_is_old : {true, false}) {
    const Outcome outcome = client_is_old ? Shake(old, Identity("a")) : Shake(Identity("a"), old);
    EXPECT_EQ(outcome.client.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(outcome.client.message()), HasSubstr("7 (muster 9.9.9)"));
    EXPECT_THAT(std::string(outcome.client.message()), HasSubstr("2 (muster 0."));
    EXPECT_EQ(outcome.server.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(outcome.sent.size(), 2);
  }
}

TEST(HandshakeTest, AServerLearnsWhereTheClientIsAndMeantToGo) {
  std::vector<Destination> asked;
  const auto mine = [&asked](const Destination& destination) {
    asked.push_back(destination);
    return Reached::kWhoWasMeant;
  };
  for (const std::string& address : {std::string("h:2222"), std::string(), std::string(400, 'h')})
    EXPECT_TRUE(Shake(To(address), Identity("token"), 1, false, mine).client_passed) << address;
  ASSERT_EQ(asked.size(), 3);
  EXPECT_EQ(asked[0].address, "h:2222");
  EXPECT_EQ(asked[0].ends.client, "[::1]:5");
  EXPECT_EQ(asked[0].ends.server, "[::1]:2");
  EXPECT_EQ(asked[1].address, "");
  EXPECT_EQ(asked[2].address, "") << "no name is that long";
}

TEST(HandshakeTest, AClientThatHasReachedSomebodyElseGetsNoProof) {
  for (const auto& [reached, words] : {std::pair(Reached::kAnotherTask, "another task"),
                                       std::pair(Reached::kThroughAnother, "passes the connection on")}) {
    const Outcome outcome =
        Shake(To("h:1"), Identity("token"), 1000, false, [whom = reached](const Destination&) { return whom; });
    EXPECT_EQ(outcome.client.code(), absl::StatusCode::kUnavailable) << outcome.client;
    EXPECT_THAT(std::string(outcome.client.message()), HasSubstr(words));
    EXPECT_EQ(outcome.server.code(), absl::StatusCode::kPermissionDenied);
    EXPECT_EQ(outcome.sent[3].substr(8), std::string(32, '\0'));
  }
}

TEST(HandshakeTest, OnlyMembersOfTheJobAreAskedWhereTheyMeantToGo) {
  const Outcome outcome = Shake(To("h:1"), Identity("other"), 1000, false, [](const Destination&) {
    ADD_FAILURE() << "a stranger is asked";
    return Reached::kAnotherTask;
  });
  EXPECT_EQ(outcome.client.code(), absl::StatusCode::kPermissionDenied) << outcome.client;
}

TEST(HandshakeTest, ABusyServerAsksToComeAgain) {
  const Outcome outcome = Shake(Identity("a"), Identity("a"), 1000, /*busy=*/true);
  EXPECT_EQ(outcome.client.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(outcome.server.code(), absl::StatusCode::kResourceExhausted);
}

TEST(HandshakeTest, StrangersAreKnownByTheirFirstByte) {
  for (const std::string& bytes :
       {std::string("G"), std::string("GET / HTTP/1.1\r\n"), std::string("MUSTER\n"), std::string(4, '\0')}) {
    ServerHandshake server(Identity(""), kServerNonce);
    const Handshake::Step step = server.Advance(AsBytes(bytes.data(), bytes.size()));
    EXPECT_EQ(step.status.code(), absl::StatusCode::kFailedPrecondition) << bytes;
    EXPECT_TRUE(step.to_send.empty()) << "nothing is told to a stranger";
  }
}

TEST(HandshakeTest, AStatusPageIsNamedByWhatItAnswers) {
  for (const std::string& bytes : {std::string("HTTP/1.1 400 Bad Request\r\n"), std::string("220 mail\r\n")}) {
    ClientHandshake client(Identity(""), kClientNonce);
    client.Advance({});
    const absl::Status status = client.Advance(AsBytes(bytes.data(), bytes.size())).status;
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr("doesn't speak muster's protocol"));
    EXPECT_EQ(status.message().find("--status_port") != std::string::npos, bytes[0] == 'H') << bytes;
  }
}

TEST(HandshakeTest, AnOverlongBuildVersionIsRefusedFromItsLength) {
  std::string hello("MUSTER\r\n\x01\x00\x00\x00\x41\x00\x00\x00", 16);
  ServerHandshake server(Identity(""), kServerNonce);
  EXPECT_FALSE(server.Advance(AsBytes(hello.data(), hello.size())).status.ok());
}

TEST(HandshakeTest, AnOverlongDestinationIsRefusedFromItsLength) {
  std::string hello("MUSTER\r\n\x02\x00\x00\x00\x00\x00\x91\x01", 16);
  ServerHandshake server(Identity(""), kServerNonce);
  EXPECT_FALSE(server.Advance(AsBytes(hello.data(), hello.size())).status.ok());
}

// One of the two ends notices every changed byte.
TEST(HandshakeTest, AChangedByteIsNoticed) {
  const HandshakeIdentity identity = To("h:1");
  const std::vector<std::string> messages = Shake(identity, Identity("token")).sent;
  for (size_t message = 0; message < 3; ++message) {
    for (size_t at = 0; at < messages[message].size(); ++at) {
      ClientHandshake client(identity, kClientNonce);
      ServerHandshake server(Identity("token"), kServerNonce);
      std::string wire = client.Advance({}).to_send;
      bool passed = false;
      for (size_t i = 0; i < 4; ++i) {
        if (i == message) wire[at] = static_cast<char>(wire[at] ^ 1);
        Handshake& side = i % 2 == 0 ? static_cast<Handshake&>(server) : client;
        const Handshake::Step step = side.Advance(AsBytes(wire.data(), wire.size()));
        wire = step.to_send;
        passed = step.passed;
        if (!step.status.ok() || wire.empty()) break;
      }
      EXPECT_FALSE(passed) << message << " at " << at;
    }
  }
}

TEST(HandshakeTest, AServerThatOnlyClaimsToKnowTheTokenIsRefused) {
  const std::vector<std::string> messages = Shake(Identity("a"), Identity("a")).sent;
  for (const std::string& verdict : {std::string(40, '\0'), std::string(8, '\0') + messages[2]}) {
    ClientHandshake client(Identity("a"), kClientNonce);
    client.Advance({});
    ASSERT_TRUE(client.Advance(AsBytes(messages[1].data(), messages[1].size())).status.ok());
    const Handshake::Step step = client.Advance(AsBytes(verdict.data(), verdict.size()));
    EXPECT_FALSE(step.passed);
    EXPECT_EQ(step.status.code(), absl::StatusCode::kPermissionDenied);
  }
}

TEST(HandshakeTest, NoncesDiffer) { EXPECT_NE(RandomNonce(), RandomNonce()); }

}  // namespace
}  // namespace muster::handshake_test
