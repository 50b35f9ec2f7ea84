#include "muster/store/direct/arena_listener.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/base/net/abstract_address.h"
#include "muster/base/net/accept_again.h"
#include "muster/base/os/process_identity.h"
#include "muster/base/testing/no_free_descriptors.h"
#include "muster/store/arena/arena_locks.h"
#include "muster/store/direct/arena_attachment.h"
#include "muster/store/direct/attach_message.h"
#include "muster/store/direct/direct_access.h"
#include "muster/store/testing/simulated_store.h"

namespace muster::arena_listener_test {
namespace {

constexpr int kClients = 2;

class ArenaListenerTest : public ::testing::Test {
 protected:
  ArenaListenerTest() {
    const std::vector<std::byte> zeros(arena_->layout().value_bytes());
    arena_->Load({.generation = 1, .values = zeros});
  }
  OpenDirectReply Open(int client, uint64_t incarnation = 1) { return *access_.Open(*arena_, client, incarnation); }

  // Starts a process that attaches, takes a stripe's lock, says so and waits to be killed.
  pid_t StartAttached(const OpenDirectReply& invitation) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
      auto attachment = ArenaAttachment::Connect(invitation.socket, invitation.ticket);
      const char answer = attachment.ok() && (*attachment)->Attach(nullptr, kClients, nullptr).ok() ? 'y' : 'n';
      // Holds a stripe's lock, as in the middle of an update.
      if (answer == 'y')
        pthread_mutex_lock(&reinterpret_cast<StripeHeader*>((*attachment)->arena().memory().data() +
                                                            (*attachment)->arena().layout().stripe_offset(0))
                                ->mutex);
      if (write(ready[1], &answer, 1) != 1) _exit(1);
      for (;;) pause();
    }
    char answer = 0;
    EXPECT_EQ(read(ready[0], &answer, 1), 1);
    EXPECT_EQ(answer, 'y');
    close(ready[0]);
    close(ready[1]);
    return child;
  }

  std::unique_ptr<Arena> arena_ =
      *Arena::Create(ModelOn({{.name = "w", .shape = {5}}}, {.kind = RuleKind::kSgd}), kClients);
  std::unique_ptr<ArenaListener> port_ = *ArenaListener::Open();
  DirectAccess access_{port_.get()};
};

TEST_F(ArenaListenerTest, AProcessThatShowsATicketGetsTheVeryMemory) {
  const OpenDirectReply invitation = Open(1);
  EXPECT_TRUE(absl::IsPermissionDenied(access_.Enter(*arena_, 1, invitation.ticket))) << "nobody has come";
  const auto attachment = ArenaAttachment::Connect(invitation.socket, invitation.ticket).value();
  ASSERT_EQ(attachment->Attach(nullptr, kClients, nullptr), absl::OkStatus());
  EXPECT_EQ(access_.Enter(*arena_, 1, invitation.ticket), absl::OkStatus());
  attachment->arena().header().mark = 77;
  EXPECT_EQ(arena_->header().mark, 77u);
  EXPECT_EQ(arena_->client(1).process, 0) << "this process is the ps itself";
  EXPECT_TRUE(attachment->host_alive());
  port_.reset();
  EXPECT_FALSE(attachment->host_alive());
  EXPECT_EQ(attachment->arena().header().mark, 77u) << "what is mapped stays";
}

TEST_F(ArenaListenerTest, ATicketIsGoodForOneProcess) {
  const OpenDirectReply old = Open(1, 1), newer = Open(1, 2);
  const auto refused = [](const OpenDirectReply& reply) {
    return absl::IsPermissionDenied(ArenaAttachment::Connect(reply.socket, reply.ticket).status());
  };
  EXPECT_TRUE(refused(old)) << "another incarnation's";
  EXPECT_TRUE(refused({newer.socket, std::string(32, '0')}));
  EXPECT_TRUE(refused({newer.socket, ""}));
  EXPECT_FALSE(refused(newer));
  EXPECT_TRUE(refused(newer)) << "it was used";
  EXPECT_TRUE(absl::IsPermissionDenied(access_.Enter(*arena_, 0, newer.ticket))) << "another client's";
}

// The answer may have been lost, or the request been duplicated and the second copy come late.
TEST_F(ArenaListenerTest, AskingTwiceDoesNotMakeATicketWorthless) {
  const OpenDirectReply first = Open(1);
  EXPECT_EQ(Open(1).ticket, first.ticket);
  const auto attachment = ArenaAttachment::Connect(first.socket, first.ticket).value();
  const OpenDirectReply later = Open(1);
  EXPECT_NE(later.ticket, first.ticket);
  EXPECT_EQ(access_.Enter(*arena_, 1, first.ticket), absl::OkStatus());
  EXPECT_TRUE(absl::IsPermissionDenied(access_.Enter(*arena_, 1, later.ticket)));
  ASSERT_TRUE(ArenaAttachment::Connect(later.socket, later.ticket).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(access_.Enter(*arena_, 1, first.ticket))) << "somebody came after that";
  EXPECT_EQ(access_.Enter(*arena_, 1, later.ticket), absl::OkStatus());
}

TEST_F(ArenaListenerTest, WhoIsOnAnotherHostFindsNoSocket) {
  const absl::Status status = ArenaAttachment::Connect("muster-of-another-host", std::string(32, '0')).status();
  EXPECT_EQ(status, absl::UnavailableError("it is not on this host"));
}

TEST_F(ArenaListenerTest, WithoutFreeDescriptorsConnectionsWaitAndTheThreadDoesNotTurnWithoutEnd) {
  const OpenDirectReply invitation = Open(1);
  const int connection = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  const timeval patience = absl::ToTimeval(3 * kAcceptAgainAfter / 2);
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  AttachMessage hello{.pid_namespace = PidNamespace()};
  std::memcpy(hello.ticket, invitation.ticket.data(), sizeof hello.ticket);
  const AbstractAddress address(invitation.socket);
  char byte = 0;
  {
    const NoFreeDescriptors none;
    ASSERT_EQ(connect(connection, address.get(), address.length), 0);
    ASSERT_EQ(send(connection, &hello, sizeof hello, 0), static_cast<ssize_t>(sizeof hello));
    const int64_t before = port_->turns();
    EXPECT_EQ(recv(connection, &byte, 1, 0), -1);
    EXPECT_LT(port_->turns() - before, 100) << "it asks again at once";
  }
  const timeval longer = {.tv_sec = 20, .tv_usec = 0};
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &longer, sizeof longer);
  EXPECT_EQ(recv(connection, &byte, 1, 0), 1) << "then it has its turn";
  close(connection);
}

TEST_F(ArenaListenerTest, AStoppedWriterIsKilledBeforeAnotherTakesItsRow) {
  const OpenDirectReply invitation = Open(1);
  const pid_t child = StartAttached(invitation);
  ASSERT_EQ(access_.Enter(*arena_, 1, invitation.ticket), absl::OkStatus());
  EXPECT_EQ(arena_->client(1).process, child);
  kill(child, SIGSTOP);
  // A restarted ps, which knows the process only from the arena, can do it too.
  DirectAccess successor(nullptr);
  absl::Status evicted = successor.Evict(*arena_, 1);
  siginfo_t info = {};
  ASSERT_EQ(waitid(P_PID, child, &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(info.si_status, SIGKILL);
  if (!evicted.ok()) {
    EXPECT_TRUE(absl::IsAlreadyExists(evicted)) << evicted;
    evicted = successor.Evict(*arena_, 1);
  }
  EXPECT_EQ(evicted, absl::OkStatus());
  EXPECT_EQ(arena_->client(1).process, 0);
  std::vector<std::byte> values(20);
  arena_->Read(0, values);  // its lock is free
  waitpid(child, nullptr, 0);
}

TEST_F(ArenaListenerTest, AStoppedProcessThatKeepsALockIsKilledByWhoWaits) {
  const pid_t child = StartAttached(Open(1));
  kill(child, SIGSTOP);
  auto* head = reinterpret_cast<StripeHeader*>(arena_->memory().data() + arena_->layout().stripe_offset(0));
  Arena::Locks locks(*arena_);
  EXPECT_EQ(LockRobust(&head->mutex, locks, absl::Milliseconds(50)), EOWNERDEAD);
  pthread_mutex_consistent(&head->mutex);
  pthread_mutex_unlock(&head->mutex);
  siginfo_t info = {};
  ASSERT_EQ(waitid(P_PID, child, &info, WEXITED), 0);
  EXPECT_EQ(info.si_status, SIGKILL);
}

// A waiting ps hears nobody.

TEST_F(ArenaListenerTest, WhoHasSaidDoneOrClosedItsConnectionIsNotKilled) {
  const OpenDirectReply invitation = Open(0);
  const pid_t child = StartAttached(invitation);
  ASSERT_EQ(access_.Enter(*arena_, 0, invitation.ticket), absl::OkStatus());
  DirectAccess::Leave(*arena_, 0);
  EXPECT_EQ(access_.Evict(*arena_, 0), absl::OkStatus());
  EXPECT_EQ(waitpid(child, nullptr, WNOHANG), 0) << "it lives";
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace muster::arena_listener_test
