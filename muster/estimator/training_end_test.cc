#include "muster/estimator/training_end.h"

#include <gmock/gmock.h>

#include "muster/base/files/memory_file_system.h"
#include "muster/estimator/testing/straight_line.h"
#include "muster/train/hooks/hooks.h"
#include "muster/train/threads/error.h"

namespace muster::training_end_test {
namespace {

using ::testing::HasSubstr;

TEST(TrainingEndTest, IsReadAsItWasWritten) {
  MemoryFileSystem files;
  EXPECT_EQ(*ReadTrainingEnd(files, "model"), std::nullopt);
  EXPECT_EQ(RemoveTrainingEnd(files, "model"), absl::OkStatus());
  for (const TrainingEnd& end :
       {TrainingEnd{.global_step = 300, .max_steps = 1000, .why = "a \"hook\"", .wall_time = 1234.5}, TrainingEnd{}}) {
    ASSERT_EQ(WriteTrainingEnd(files, "model", end), absl::OkStatus());
    EXPECT_EQ(*ReadTrainingEnd(files, "model"), end);
  }
  EXPECT_EQ(*files.ReadFile("model/training_ended.json"),
            "{\"global_step\":null,\"max_steps\":null,\"why\":\"\",\"wall_time\":0.0}\n");
  EXPECT_EQ(RemoveTrainingEnd(files, "model"), absl::OkStatus());
  EXPECT_EQ(*ReadTrainingEnd(files, "model"), std::nullopt);
}

TEST(TrainingEndTest, ADamagedOneIsNamed) {
  for (const std::string text : {"", "[]", "{\"global_step\": 1}", "{\"global_step\": -1, \"max_steps\": null}",
                                 "{\"global_step\": 1, \"max_steps\": \"many\"}"}) {
    MemoryFileSystem files;
    ASSERT_TRUE(files.CreateDirectory("model").ok());
    ASSERT_TRUE(WriteFileAtomically(files, "model/training_ended.json", AsBytes(text.data(), text.size())).ok());
    const auto read = ReadTrainingEnd(files, "model");
    EXPECT_TRUE(absl::IsDataLoss(read.status())) << text;
    EXPECT_THAT(std::string(read.status().message()), HasSubstr("model/training_ended.json: ")) << text;
  }
}

TEST(TrainingEndTest, TheStepInACheckpointsPath) {
  EXPECT_EQ(StepOfCheckpointPath("/a/model.ckpt-30"), 30);
  EXPECT_EQ(StepOfCheckpointPath("model.ckpt-0"), 0);
  EXPECT_EQ(StepOfCheckpointPath(""), -1);
  EXPECT_EQ(StepOfCheckpointPath("/a/other"), -1);
}

TEST(TrainToItsEndTest, LeavesItsEndAndTakesAnEarlierOneAway) {
  const ModelDirectory model;
  Estimator estimator(LineModel, model.Config());
  const auto end = [&] { return *ReadTrainingEnd(PosixFileSystem(), model.path()); };
  TrainToItsEnd(estimator, LineForEver, {.max_steps = 3});
  ASSERT_TRUE(end().has_value());
  EXPECT_EQ(end()->global_step, 3);
  EXPECT_EQ(end()->max_steps, 3);
  EXPECT_EQ(end()->why, "max_steps reached");
  EXPECT_GT(end()->wall_time, 1.6e9);

  const auto fails = [&end](const InputContext&) -> Dataset {
    EXPECT_FALSE(end().has_value()) << "it is trained again";
    throw Error(absl::InternalError("no input today"));
  };
  EXPECT_THROW(TrainToItsEnd(estimator, fails, {.max_steps = 9}), Error);
  EXPECT_FALSE(end().has_value()) << "that was no end";

  const auto stop = StopIf([](const RunValues& values) { return values.global_step == 5; }, {.run_every_steps = 1});
  TrainToItsEnd(estimator, LineForEver, {.hooks = {stop}, .max_steps = 9});
  ASSERT_TRUE(end().has_value());
  EXPECT_EQ(end()->global_step, 5);
  EXPECT_EQ(end()->max_steps, 9);
  EXPECT_THAT(end()->why, HasSubstr("a hook stopped it"));
}

}  // namespace
}  // namespace muster::training_end_test
