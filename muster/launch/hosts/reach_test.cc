#include "muster/launch/hosts/reach.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/net/free_ports.h"

namespace muster::reach_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr, ::testing::IsEmpty;

TEST(ReachTest, AListenerBesideItsReservationIsReachedAndOthersAreNamed) {
  auto ports = FreePorts::Reserve(2);
  ASSERT_TRUE(ports.ok());
  const std::string address = absl::StrCat("127.0.0.1:", ports->port(0));
  const std::string nobody = absl::StrCat("127.0.0.1:", ports->port(1));
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const absl::Status listened =
        AcceptForReach(address, absl::Minutes(1), [&] { [[maybe_unused]] const auto put = write(ready[1], "x", 1); });
    _exit(listened.ok() ? 0 : 1);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_THAT(DialForReach({address, address}, absl::Seconds(30)), IsEmpty());
  const std::vector<Unreached> unreached = DialForReach({address, nobody, "nobody:x"}, absl::Seconds(30));
  ASSERT_EQ(unreached.size(), 2U);
  EXPECT_EQ(unreached[0].address, nobody);
  EXPECT_THAT(unreached[0].why, AllOf(HasSubstr("refused"), HasSubstr("(errno 111)")));
  EXPECT_THAT(unreached[1].why, HasSubstr("nobody:x"));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

TEST(ReachTest, ADiallerThatHearsNothingEnds) {
  // A listener whose queue is full drops what comes.
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in any = {};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof any;
  ASSERT_EQ(bind(server, reinterpret_cast<sockaddr*>(&any), size), 0);
  ASSERT_EQ(listen(server, 0), 0);
  ASSERT_EQ(getsockname(server, reinterpret_cast<sockaddr*>(&any), &size), 0);
  const std::string address = absl::StrCat("127.0.0.1:", ntohs(any.sin_port));
  const std::vector<Unreached> unreached = DialForReach({address, address, address, address}, absl::Milliseconds(100));
  ASSERT_FALSE(unreached.empty());
  EXPECT_EQ(unreached.back().why, "no answer within 100ms");
  close(server);
}

TEST(ReachTest, ABrokenAddressCannotBeListenedAt) {
  EXPECT_FALSE(AcceptForReach("nowhere", absl::Seconds(1), [] {}).ok());
}

}  // namespace
}  // namespace muster::reach_test
