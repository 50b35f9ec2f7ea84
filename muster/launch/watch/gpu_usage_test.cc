#include "muster/launch/watch/gpu_usage.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <string>

#include "muster/launch/testing/fake_proc.h"

namespace muster::gpu_usage_test {
namespace {

using ::testing::IsEmpty;

constexpr char kTwo[] =
    "0, GPU-5ce1a3b2-0a4f-11ee-be56-0242ac120002, 37, 1024, 81559\n"
    "1, GPU-77aa0000-0a4f-11ee-be56-0242ac120002, [N/A], [Not Supported], 81559\n";

// Writes an executable script into `folder`.
std::string Script(const FakeProc& folder, const std::string& text) {
  folder.Write("nvidia-smi", "#!/bin/sh\n" + text + "\n");
  std::string path = folder.path() + "/nvidia-smi";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

TEST(GpuUsage, ParsesALineAGpu) {
  const auto gpus = ParseGpuUsage(kTwo);
  ASSERT_EQ(gpus.size(), 2U);
  const GpuUsage first = {.index = 0,
                          .uuid = "GPU-5ce1a3b2-0a4f-11ee-be56-0242ac120002",
                          .percent = 37,
                          .mem_bytes = int64_t{1024} << 20,
                          .mem_total = int64_t{81559} << 20};
  EXPECT_EQ(gpus[0], first);
  EXPECT_EQ(gpus[1].percent, std::nullopt);
  EXPECT_EQ(gpus[1].mem_bytes, std::nullopt);
  EXPECT_EQ(gpus[1].mem_total, int64_t{81559} << 20);
}

TEST(GpuUsage, PassesOverWhatItDoesNotUnderstand) {
  EXPECT_THAT(ParseGpuUsage(""), IsEmpty());
  EXPECT_THAT(ParseGpuUsage("No devices were found\nUnable to determine the device handle, GPU is lost, x, y, z\n"),
              IsEmpty());
  EXPECT_EQ(ParseGpuUsage("a warning\n3, GPU-1, 1, 2, 3").size(), 1U);
}

TEST(GpuUsage, FindsByNumberAndByUuid) {
  const auto gpus = ParseGpuUsage(kTwo);
  EXPECT_EQ(FindGpu(gpus, "1"), &gpus[1]);
  EXPECT_EQ(FindGpu(gpus, "GPU-5ce1"), &gpus[0]);
  EXPECT_EQ(FindGpu(gpus, "2"), nullptr);
  EXPECT_EQ(FindGpu(gpus, ""), nullptr);
  EXPECT_EQ(FindGpu(gpus, "MIG-1"), nullptr);
}

TEST(GpuUsage, AsksTheProgram) {
  const FakeProc folder;
  const std::string program =
      Script(folder, "[ \"$2\" = --format=csv,noheader,nounits ] && echo '0, GPU-1, 5, 6, 7' && echo noise >&2");
  ASSERT_EQ(ReadGpuUsage(program).size(), 1U);
  EXPECT_EQ(ReadGpuUsage(program)[0].percent, 5);
}

TEST(GpuUsage, AProgramThatFailsOrIsNotThereOrHangsIsNothing) {
  const FakeProc folder;
  EXPECT_THAT(ReadGpuUsage(folder.path() + "/none"), IsEmpty());
  EXPECT_THAT(ReadGpuUsage(Script(folder, "echo '0, GPU-1, 5, 6, 7'; exit 9")), IsEmpty());
  EXPECT_THAT(ReadGpuUsage(Script(folder, "echo '0, GPU-1, 5, 6, 7'; exec tail -f /dev/null"), absl::Milliseconds(50)),
              IsEmpty());
}

}  // namespace
}  // namespace muster::gpu_usage_test
