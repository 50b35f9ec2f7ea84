// What a training program does when its model_dir can't be written for a while, or is deleted under it: it goes on,
// says so, and saves when it can.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "tests/process/testing/process.h"
#include "tests/process/testing/small_disk.h"

namespace muster::model_dir_trouble_test {
namespace {

using ::testing::AllOf, ::testing::Contains, ::testing::HasSubstr, ::testing::StartsWith;

// Trains until it is told to stop. The first line about the loss comes when the first checkpoint is written.
std::vector<std::string> TrainForEver(const std::string& model_dir, const std::string& save_steps) {
  return {BinFolder() + "/toy_worker",  "--steps=1000000000", "--log_steps=1000000",
          "--save_steps=" + save_steps, "--width=10000",      "--model_dir=" + model_dir};
}
constexpr char kFirstStep[] = "loss = ";
constexpr char kOften[] = "1000";  // so often that trouble is met at once

// Ends the program as the user would, and expects that its last step is saved.
void ExpectGoodEnd(Process& toy, const std::string& model_dir) {
  toy.Signal(SIGTERM);
  EXPECT_EQ(toy.Wait(), 0) << toy.err;
  const auto latest = LatestCheckpoint(PosixFileSystem(), model_dir);
  ASSERT_TRUE(latest.ok() && latest->has_value()) << latest.status() << toy.err;
  EXPECT_NE(*latest, JoinPath(model_dir, "model.ckpt-0"));
}

constexpr char kGoesOn[] = "training goes on, the next attempt is in 5s; the newest is ";

TEST(ModelDirTrouble, TrainingOutlivesAFullDisk) {
  SmallDisk disk("size=1m");
  if (!disk.mounted()) GTEST_SKIP() << disk.error();
  Process toy(TrainForEver(disk.path(), kOften));
  toy.WaitForErr(kFirstStep);
  const std::string filler = disk.path() + "/filler";
  const auto file = PosixFileSystem().OpenForWriting(filler).value();
  std::atomic<bool> enough = false;
  std::thread filling([&] {  // also what the removal of an old checkpoint gives back
    const std::vector<std::byte> block(4096);
    while (!enough) file->Append(block).IgnoreError();
  });
  toy.WaitForErr(kGoesOn);
  enough = true;
  filling.join();
  EXPECT_THAT(toy.err, HasSubstr("No space left on device"));
  ASSERT_TRUE(file->Close().ok());
  ASSERT_TRUE(PosixFileSystem().Remove(filler).ok());
  ExpectGoodEnd(toy, disk.path());
}

TEST(ModelDirTrouble, TrainingOutlivesALackOfDescriptors) {
  ScratchFolder model;
  Process toy(TrainForEver(model.path(), kOften));
  toy.WaitForErr(kFirstStep);
  rlimit before{};
  ASSERT_EQ(prlimit(toy.pid(), RLIMIT_NOFILE, nullptr, &before), 0);
  const rlimit few{.rlim_cur = 3, .rlim_max = before.rlim_max};
  ASSERT_EQ(prlimit(toy.pid(), RLIMIT_NOFILE, &few, nullptr), 0);
  toy.WaitForErr(kGoesOn);
  EXPECT_THAT(toy.err, HasSubstr("Too many open files"));
  ASSERT_EQ(prlimit(toy.pid(), RLIMIT_NOFILE, &before, nullptr), 0);
  ExpectGoodEnd(toy, model.path());
}

TEST(ModelDirTrouble, ADeletedModelDirIsMadeAgainWithACheckpointAndAnEventFile) {
  ScratchFolder model;
  const std::string model_dir = model / "model";
  Process toy(TrainForEver(model_dir, /*save_steps=*/"1000000000"));  // nothing else notices
  toy.WaitForErr(kFirstStep);
  ASSERT_TRUE(PosixFileSystem().RemoveTree(model_dir).ok());
  toy.WaitForErr("summaries go on in " + model_dir);
  ExpectGoodEnd(toy, model_dir);
  EXPECT_THAT(toy.err, HasSubstr(model_dir + "/events.out.tfevents."));
  EXPECT_THAT(EntriesOf(model_dir), AllOf(Contains("checkpoint"), Contains(StartsWith("events.out.tfevents."))));
}

TEST(ModelDirTrouble, WithoutRoomAtTheEndItSaysWhatIsLostAndFails) {
  SmallDisk disk("size=64k");
  if (!disk.mounted()) GTEST_SKIP() << disk.error();
  Process toy({BinFolder() + "/toy_worker", "--steps=20", "--width=100000", "--last_save_patience=0",
               "--model_dir=" + disk.path()});
  EXPECT_EQ(toy.Wait(), 1) << toy.err;
  EXPECT_THAT(toy.err, HasSubstr("the next attempt is in 5s; the newest is none"));
  EXPECT_THAT(After(toy.err, "toy_worker: the last checkpoint could not be saved in 0: "),
              Contains(AllOf(HasSubstr(disk.path()), HasSubstr("No space left on device"),
                             HasSubstr("the 20 steps since the beginning are lost, as there is no checkpoint"))));
}

}  // namespace
}  // namespace muster::model_dir_trouble_test
