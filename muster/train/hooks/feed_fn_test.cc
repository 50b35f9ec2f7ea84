#include "muster/train/hooks/feed_fn.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "muster/train/testing/training_process.h"
#include "muster/train/threads/error.h"

namespace muster::feed_fn_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr;

class FeedFnTest : public ::testing::Test {
 protected:
  SimulatedStore store_{1, {"chief:0"}};
  TrainingProcess process_{store_, "chief:0"};
};

TEST_F(FeedFnTest, EachStepReadsWhatTheHooksFedForIt) {
  int calls = 0;
  const auto numbers = FeedFn([&calls] { return std::map<std::string, std::any>{{"keep_prob", 0.5 * ++calls}}; });
  const auto words = FeedFn([] { return std::map<std::string, std::any>{{"mode", std::string("train")}}; });
  Session session = process_.MakeSession({}, {numbers, words});
  std::vector<double> read;
  process_.source.on_step = [&](double loss) {
    read.push_back(session.Fed<double>("keep_prob").value_or(-1));
    EXPECT_EQ(session.Fed<std::string>("mode").value_or(""), "train");
    EXPECT_EQ(session.Fed<float>("keep_prob").status(),
              absl::InvalidArgumentError("'keep_prob' was fed as double and is read as float"));
    const absl::Status unknown = session.Fed<double>("keep").status();
    EXPECT_TRUE(absl::IsNotFound(unknown));
    EXPECT_THAT(std::string(unknown.message()), HasSubstr("'keep'"));
    return loss;
  };
  ASSERT_EQ(session.Start(), absl::OkStatus());
  EXPECT_EQ(calls, 0);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(session.Run(), absl::OkStatus());
  EXPECT_THAT(read, ElementsAre(0.5, 1.0, 1.5));
}

TEST_F(FeedFnTest, OneNameFedByTwoHooksIsAnErrorBeforeTheStep) {
  const auto feed = [] { return std::map<std::string, std::any>{{"x", 1}}; };
  Session session = process_.MakeSession({}, {FeedFn(feed), FeedFn(feed)});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  const absl::Status status = session.Run();
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("'x' is fed by two hooks"));
  EXPECT_EQ(process_.source.steps, 0);
}

TEST_F(FeedFnTest, TheEndOfItsInputIsACleanEnd) {
  int left = 2;
  Session session =
      process_.MakeSession({.checkpoint_dir = "model"}, {FeedFn([&left]() -> std::map<std::string, std::any> {
                             if (left-- == 0) throw Error(absl::OutOfRangeError("end of input"));
                             return {};
                           })});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  while (!session.ShouldStop()) ASSERT_EQ(session.Run(), absl::OkStatus());
  EXPECT_EQ(process_.source.steps, 2);
  EXPECT_EQ(session.Close(), absl::OkStatus());
  EXPECT_EQ(session.last_checkpoint(), "model/model.ckpt-2");
}

TEST_F(FeedFnTest, NothingOfARunIsLeftForTheNext) {
  int calls = 0;
  Session session = process_.MakeSession({}, {FeedFn([&calls] {
                                           std::map<std::string, std::any> feeds;
                                           if (++calls == 1) feeds["x"] = 1;
                                           return feeds;
                                         })});
  std::vector<bool> fed;
  process_.source.on_step = [&](double loss) {
    fed.push_back(session.Fed<int>("x").ok());
    return loss;
  };
  ASSERT_EQ(session.Start(), absl::OkStatus());
  for (int i = 0; i < 2; ++i) ASSERT_EQ(session.Run(), absl::OkStatus());
  EXPECT_THAT(fed, ElementsAre(true, false));
}

}  // namespace
}  // namespace muster::feed_fn_test
