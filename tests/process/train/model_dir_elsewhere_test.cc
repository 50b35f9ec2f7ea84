// Parameter servers that don't see the chief's model_dir, as on hosts without a shared file system: the chief writes
// whole checkpoints there, and they are restored from there.
#include <gmock/gmock.h>
#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/checkpoint/checkpoint_reader.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/process.h"

namespace muster::model_dir_elsewhere_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::Not;

// The large variable is on ps 0, whose part then takes several messages.
constexpr char kWidth[] = "--width=3000000";

std::vector<std::string> Chief(ByHand& cluster, const std::string& model_dir, int steps) {
  return Joined({BinFolder() + "/toy_worker", "--apply=server", kWidth},
                Joined(cluster.Flags("worker", 0),
                       {absl::StrCat("--steps=", steps), "--save_steps=1000", "--model_dir=" + model_dir}));
}

TEST(ModelDirElsewhere, TheChiefWritesWhatThePsDoNotSeeAndRestoresItOntoFewerPs) {
  ScratchFolder model;
  ScratchFolder other;
  {
    ByHand cluster(2, 1);
    ServingPs ps0(cluster, 0, {"--model_dir=" + other.path()});
    ServingPs ps1(cluster, 1, {"--model_dir=" + model.path()});
    Process chief(Chief(cluster, model.path(), 10));
    EXPECT_EQ(chief.Wait(), 0) << chief.err;
    EXPECT_THAT(chief.err, AllOf(HasSubstr("ps:0 (" + cluster.ps_address(0) + ") does not see " + model.path()),
                                 HasSubstr("an evaluator (place it on this host)")));
    EXPECT_LT(chief.err.find("does not see"), chief.err.find("loss = ")) << "it is said before training starts";
    EXPECT_EQ(ps0.Wait(), 0) << ps0.err;
    EXPECT_EQ(ps1.Wait(), 0) << ps1.err;
  }
  EXPECT_THAT(EntriesOf(other.path()), IsEmpty());
  const std::string saved = model / "model.ckpt-10";
  ASSERT_EQ(LatestCheckpoint(PosixFileSystem(), model.path()).value(), saved);
  EXPECT_TRUE(CheckpointReader::Open(PosixFileSystem(), saved).ok());
  ByHand cluster(1, 1);
  ServingPs ps(cluster, 0, {"--model_dir=" + other.path()});
  Process chief(Chief(cluster, model.path(), 20));
  EXPECT_EQ(chief.Wait(), 0) << chief.err;
  EXPECT_THAT(chief.err, AllOf(HasSubstr("Restoring parameters from " + saved), Not(HasSubstr("step = 1\n"))));
  EXPECT_EQ(LatestCheckpoint(PosixFileSystem(), model.path()).value(), model / "model.ckpt-20");
  EXPECT_EQ(ps.Wait(), 0) << ps.err;
  EXPECT_THAT(EntriesOf(other.path()), IsEmpty());
}

// A ps that has lost its memory gets its values from the chief, which alone can read the checkpoint.
TEST(ModelDirElsewhere, APsThatWasLostGetsItsValuesFromTheChief) {
  ScratchFolder model;
  ScratchFolder other;
  ByHand cluster(1, 1);
  auto ps = std::make_unique<ServingPs>(cluster, 0, std::vector<std::string>{"--model_dir=" + other.path()});
  Process chief(Joined({BinFolder() + "/toy_worker", "--apply=server", "--steps=1000000000", "--save_steps=100",
                        "--log_steps=1000", "--model_dir=" + model.path()},
                       cluster.Flags("worker", 0)));
  chief.WaitForErr("step = 1000");
  ps->Signal(SIGKILL);
  EXPECT_EQ(ps->Reap(), 128 + SIGKILL);
  ps = std::make_unique<ServingPs>(cluster, 0, std::vector<std::string>{"--model_dir=" + other.path()});
  const size_t restored = chief.WaitForErr("Restoring parameters from " + model.path() + "/model.ckpt-", 0);
  chief.WaitForErr("loss = ", restored);
  chief.Signal(SIGTERM);
  EXPECT_EQ(chief.Wait(), 0) << chief.err;
  EXPECT_EQ(ps->Wait(), 0) << ps->err;
  EXPECT_THAT(EntriesOf(other.path()), IsEmpty());
}

}  // namespace
}  // namespace muster::model_dir_elsewhere_test
