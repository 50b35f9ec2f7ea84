#include "muster/launch/engines/command/acquired_hosts.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"

namespace muster::acquired_hosts_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::Not, ::testing::Pair;

TEST(AcquiredHostsTest, TakesHostsAJobAndWhyItWaits) {
  AcquiredHosts acquired;
  EXPECT_EQ(TakeAcquireLine(R"({"waits": "Resources"})", acquired).value(), AcquireLine::kWaits);
  EXPECT_TRUE(acquired.empty());
  EXPECT_EQ(TakeAcquireLine(R"({"job": 123})", acquired).value(), AcquireLine::kJob);
  EXPECT_EQ(
      TakeAcquireLine(R"({"host": "n1", "address": "10.0.0.1", "id": "a7", "slots": 2, "gpus": 1})", acquired).value(),
      AcquireLine::kHost);
  EXPECT_EQ(TakeAcquireLine(R"({"host": "n2"})", acquired).value(), AcquireLine::kHost);
  EXPECT_EQ(acquired.job, "123");
  EXPECT_EQ(acquired.waits, "Resources");
  EXPECT_THAT(acquired.hosts,
              ElementsAre(Host{.name = "n1", .slots = 2, .gpus = 1, .address = "10.0.0.1"}, Host{.name = "n2"}));
  EXPECT_THAT(acquired.ids, ElementsAre(Pair("n1", "a7")));
}

TEST(AcquiredHostsTest, AnythingElseIsNamed) {
  AcquiredHosts acquired;
  const auto mistake = [&acquired](const char* line) {
    return std::string(TakeAcquireLine(line, acquired).status().message());
  };
  EXPECT_THAT(mistake("Submitted job 7"),
              AllOf(HasSubstr("it printed 'Submitted job 7', which isn't a JSON object"), HasSubstr("accepted: ")));
  EXPECT_THAT(mistake("[]"), HasSubstr("isn't a JSON object"));
  EXPECT_THAT(mistake(R"({"hosts": "n1"})"), HasSubstr("an unknown 'hosts' (nearest: host)"));
  EXPECT_THAT(mistake(R"({"host": "-n1"})"), HasSubstr("isn't a host's name"));
  EXPECT_THAT(mistake(R"({"host": ["n1"]})"), HasSubstr("whose host is no text"));
  EXPECT_THAT(mistake(R"({"host": "n1", "slots": 0})"), HasSubstr("slots"));
  EXPECT_THAT(mistake(R"({"host": "n1", "job": "7"})"), HasSubstr("none of these"));
  EXPECT_THAT(mistake("{}"), HasSubstr("none of these"));
  EXPECT_THAT(mistake(R"({"job": "17\u00008"})"), HasSubstr("whose job is no text")) << "a word of release ends there";
  EXPECT_THAT(mistake(R"({"host": "n1\nlost"})"), AllOf(HasSubstr("isn't a host's name"), Not(HasSubstr("\n"))));
  EXPECT_TRUE(acquired.empty());
  EXPECT_TRUE(TakeAcquireLine(R"({"host": "n1"})", acquired).ok());
  EXPECT_THAT(mistake(R"({"host": "n1"})"), HasSubstr("there already"));
}

TEST(AcquiredHostsTest, HostsWithoutEndHaveOne) {
  AcquiredHosts acquired;
  absl::Status status;
  for (int i = 0; status.ok() && i < 20'000; ++i)
    status = TakeAcquireLine(absl::StrCat("{\"host\": \"n", i, "\"}"), acquired).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("a host more than the 10000"));
}

}  // namespace
}  // namespace muster::acquired_hosts_test
