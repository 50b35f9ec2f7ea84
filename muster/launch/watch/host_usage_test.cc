#include "muster/launch/watch/host_usage.h"

#include <gmock/gmock.h>

#include "muster/base/testing/scratch_folder.h"

namespace muster::host_usage_test {
namespace {

using ::testing::IsEmpty;

TEST(HostUsageTest, IsReadAsItWasWritten) {
  const ScratchFolder folder;
  const std::map<TaskId, HostUsage> usages = {{{kWorkerJob, 1},
                                               {.cpu_seconds = 1.5,
                                                .mem_bytes = 1 << 20,
                                                .gpus = {.count = 2, .percent = 12.5, .mem_bytes = 7},
                                                .restarts = 2,
                                                .when = absl::FromUnixMicros(1'700'000'000'000'001)}},
                                              {{kPsJob, 0}, {.when = absl::UnixEpoch()}}};
  ASSERT_EQ(WriteHostUsage(folder / "usage", usages), absl::OkStatus());
  EXPECT_EQ(ReadHostUsage(folder / "usage"), usages);
  ASSERT_EQ(WriteHostUsage(folder / "usage", {}), absl::OkStatus());
  EXPECT_THAT(ReadHostUsage(folder / "usage"), IsEmpty());
}

TEST(HostUsageTest, WhatCantBeReadIsNothing) {
  const ScratchFolder folder;
  EXPECT_THAT(ReadHostUsage(folder / "none"), IsEmpty());
  for (const char* text : {"", "{", "{}", "[1]", "[{\"job\": 1}]"}) {
    folder.Write("usage", text);
    EXPECT_THAT(ReadHostUsage(folder / "usage"), IsEmpty()) << text;
  }
}

}  // namespace
}  // namespace muster::host_usage_test
