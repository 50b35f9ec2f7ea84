#include "muster/launch/engines/driver/driver_variables.h"

#include <gmock/gmock.h>

namespace muster::driver_variables_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::Pair;

TEST(DriverVariablesTest, SayTheJobAndItsHosts) {
  const auto driver =
      ReadDriverVariables({"PATH=/bin", "MUSTER_DRIVER_JOB=muster-1-ab", "MUSTER_DRIVER_AT=http://h1:8265 python3",
                           "MUSTER_DRIVER_SOCKET=/tmp/s", "MUSTER_DRIVER_HOSTS=h1=10.0.0.1,h2=fd00::2"});
  ASSERT_TRUE(driver.ok()) << driver.status();
  EXPECT_EQ(driver->job, "muster-1-ab");
  EXPECT_EQ(driver->at, "http://h1:8265 python3");
  EXPECT_EQ(driver->socket, "/tmp/s");
  EXPECT_THAT(driver->hosts, ElementsAre(Pair("h1", "10.0.0.1"), Pair("h2", "fd00::2")));
  EXPECT_EQ(driver->says, "");
  EXPECT_EQ(ReadDriverVariables({"MUSTER_DRIVER_JOB=j", "MUSTER_DRIVER_SAYS=begins with 2 of 3 nodes"})->says,
            "begins with 2 of 3 nodes");
}

TEST(DriverVariablesTest, WhatIsWrongIsNamed) {
  EXPECT_TRUE(absl::IsNotFound(ReadDriverVariables({"PATH=/bin"}).status()));
  EXPECT_TRUE(ReadDriverVariables({"MUSTER_DRIVER_JOB=j"})->hosts.empty()) << "the job has none yet";
  for (const char* hosts : {"h1", "h1=", "-x=10.0.0.1", "a b=10.0.0.1"})
    EXPECT_THAT(std::string(ReadDriverVariables({"MUSTER_DRIVER_JOB=j", std::string("MUSTER_DRIVER_HOSTS=") + hosts})
                                .status()
                                .message()),
                HasSubstr("MUSTER_DRIVER_HOSTS"))
        << hosts;
}

}  // namespace
}  // namespace muster::driver_variables_test
