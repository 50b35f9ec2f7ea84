#include "muster/launch/watch/page_reader.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace muster::page_reader_test {
namespace {

constexpr PageLimits kPatient = {.patience = absl::Seconds(60), .max_bytes = 1000};

// Both ends of a connection. The page has answered before it is asked.
class AnsweredPage {
 public:
  explicit AnsweredPage(const std::string& answer, bool ends = true) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends_.data()), 0);
    EXPECT_EQ(write(ends_[1], answer.data(), answer.size()), static_cast<ssize_t>(answer.size()));
    if (ends) shutdown(ends_[1], SHUT_WR);
  }
  ~AnsweredPage() {
    close(ends_[0]);
    if (ends_[1] >= 0) close(ends_[1]);
  }
  AnsweredPage(const AnsweredPage&) = delete;
  AnsweredPage& operator=(const AnsweredPage&) = delete;

  int connection() const { return ends_[0]; }
  void Vanish() {
    close(ends_[1]);
    ends_[1] = -1;
  }
  std::string Asked() const {
    std::array<char, 1000> asked = {};
    const ssize_t size = read(ends_[1], asked.data(), asked.size());
    return std::string(asked.data(), size > 0 ? static_cast<size_t>(size) : 0);
  }

 private:
  std::array<int, 2> ends_ = {-1, -1};
};

TEST(PageReader, AsksForThePathAndReturnsTheBody) {
  const AnsweredPage page("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\ncontent-length: 5\r\n\r\n{\"a\"}");
  const auto body = ReadPageOver(page.connection(), "/status", kPatient);
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_EQ(*body, "{\"a\"}");
  EXPECT_EQ(page.Asked(), "GET /status HTTP/1.0\r\n\r\n");
}

TEST(PageReader, WaitsNoLongerThanItsPatience) {
  const AnsweredPage silent("", /*ends=*/false);
  const AnsweredPage half("HTTP/1.1 200 OK\r\n\r\n{", /*ends=*/false);
  const PageLimits limits = {.patience = absl::Milliseconds(1)};
  EXPECT_TRUE(absl::IsDeadlineExceeded(ReadPageOver(silent.connection(), "/", limits).status()));
  EXPECT_TRUE(absl::IsDeadlineExceeded(ReadPageOver(half.connection(), "/", limits).status()));
}

TEST(PageReader, KeepsNoMoreThanItsLimit) {
  const std::string head = "HTTP/1.0 200\r\n\r\n";
  const AnsweredPage fits(head + std::string(kPatient.max_bytes - head.size(), 'a'));
  EXPECT_TRUE(ReadPageOver(fits.connection(), "/", kPatient).ok());
  const AnsweredPage endless(head + std::string(kPatient.max_bytes - head.size() + 1, 'a'), /*ends=*/false);
  EXPECT_TRUE(absl::IsResourceExhausted(ReadPageOver(endless.connection(), "/", kPatient).status()));
}

TEST(PageReader, SurvivesAPageThatVanishes) {
  AnsweredPage gone("");
  gone.Vanish();
  EXPECT_TRUE(absl::IsUnavailable(ReadPageOver(gone.connection(), "/", kPatient).status()));
}

TEST(PageReader, TakesOnlyAWholeGoodAnswer) {
  for (const std::string_view answer : {"HTTP/1.0 200\r\n\r\nbody", "HTTP/1.1 200 \r\nA:b\r\n\r\nbody",
                                        "HTTP/1.1 200 Fine\r\nCONTENT-LENGTH:  4 \r\n\r\nbody"}) {
    const auto body = BodyOfHttpAnswer(answer);
    ASSERT_TRUE(body.ok()) << answer << body.status();
    EXPECT_EQ(*body, "body");
  }
  for (const std::string_view answer :
       {"", "\r\n\r\n", "HTTP/1.1 200 OK\r\n", "HTTP/1.1\r\n\r\nbody", "HTTP/1.1 2000 OK\r\n\r\nbody",
        "HTTP/1.1 20\r\n\r\nbody", "HTTP/1.1 404 Not Found\r\n\r\nbody", "SSH-2.0-OpenSSH_9.2\r\n\r\n 200 body",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nbody", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbody",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nbody",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\nbody",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\nbody"})
    EXPECT_TRUE(absl::IsDataLoss(BodyOfHttpAnswer(answer).status())) << answer;
}

TEST(PageReader, ReadsOnlyPagesOfThisHost) {
  for (const std::string_view address : {"", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:0",
                                         "127.0.0.1:65536", "localhost:80", "10.0.0.1:80", "0.0.0.0:80", "[::1]:80"})
    EXPECT_TRUE(absl::IsInvalidArgument(ReadPage(address, "/").status())) << address;
}

}  // namespace
}  // namespace muster::page_reader_test
