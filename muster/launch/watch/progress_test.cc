#include "muster/launch/watch/progress.h"

#include <gtest/gtest.h>

#include <string>

#include "muster/observe/status_server.h"

namespace muster::progress_test {
namespace {

constexpr char kWorker[] =
    R"({"task":"worker:0","state":"training","global_step":42,"steps_per_second":12.5,"loss":0.25,
        "staleness":{"median":1.5,"p99":4}})";

TEST(Progress, OfAWorker) {
  const TaskProgress expected = {.steps_per_second = 12.5, .loss = 0.25, .staleness = 1.5, .step = 42};
  EXPECT_EQ(ProgressOfStatus(kWorker), expected);
}

TEST(Progress, OfAPs) {
  const TaskProgress expected = {.staleness = 2, .step = 7};
  EXPECT_EQ(ProgressOfStatus(R"({"task":"ps:0","global_step":7,"staleness":[1,1,3,0]})"), expected);
  const TaskProgress without = {.step = 0};
  EXPECT_EQ(ProgressOfStatus(R"({"task":"ps:0","global_step":0,"staleness":[0,0]})"), without);
}

TEST(Progress, WhatIsNotThereStaysUnset) {
  EXPECT_EQ(ProgressOfStatus(""), TaskProgress());
  EXPECT_EQ(ProgressOfStatus("[1]"), TaskProgress());
  EXPECT_EQ(ProgressOfStatus(R"({"loss":null,"steps_per_second":"fast","staleness":5,"global_step":1.5})"),
            TaskProgress());
}

TEST(Progress, IsReadFromThePage) {
  const auto page = StatusServer::Start({},
                                        {.title = "worker:0",
                                         .status = [] { return std::string(kWorker); },
                                         .text = [](const std::string&) { return std::string(); },
                                         .metrics = [](const std::string&) { return std::string(); }},
                                        "");
  ASSERT_TRUE(page.ok()) << page.status();
  const std::string url = (*page)->url();
  const std::string address = url.substr(url.find("//") + 2, url.size() - url.find("//") - 3);
  EXPECT_EQ(ReadProgress(address, absl::Seconds(60)).step, 42);
}

TEST(Progress, NoPageIsNoProgress) {
  EXPECT_EQ(ReadProgress(""), TaskProgress());
  EXPECT_EQ(ReadProgress("127.0.0.1:x"), TaskProgress());
  EXPECT_EQ(ReadProgress("127.0.0.1:1"), TaskProgress());
}

}  // namespace
}  // namespace muster::progress_test
