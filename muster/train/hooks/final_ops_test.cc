#include "muster/train/hooks/final_ops.h"

#include <gmock/gmock.h>

#include <stdexcept>
#include <string>

#include "muster/train/testing/hook_driver.h"
#include "muster/train/testing/training_process.h"

namespace muster::final_ops_test {
namespace {

using ::testing::Contains, ::testing::HasSubstr, ::testing::IsEmpty;

class FinalOpsTest : public ::testing::Test {
 protected:
  SimulatedStore store_{1, {"chief:0"}};
  TrainingProcess process_{store_, "chief:0"};
};

TEST_F(FinalOpsTest, RunAtTheEndWithTheModelThere) {
  int calls = 0;
  const auto final_ops = std::make_shared<FinalOps>(std::map<std::string, FinalOps::Op>{
      {"first_weight",
       [&](const SessionContext&) -> absl::StatusOr<std::any> { return process_.source.values(0).at(0); }},
      {"step", [&](const SessionContext& session) -> absl::StatusOr<std::any> {
         ++calls;
         return session.global_step;
       }}});
  Session session = process_.MakeSession({}, {final_ops});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  for (int i = 0; i < 3; ++i) ASSERT_EQ(session.Run(), absl::OkStatus());
  EXPECT_THAT(final_ops->values(), IsEmpty());
  ASSERT_EQ(session.Close(), absl::OkStatus());
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(std::any_cast<int64_t>(final_ops->values().at("step")), 3);
  EXPECT_EQ(std::any_cast<float>(final_ops->values().at("first_weight")), process_.source.values(0)[0]);
}

TEST_F(FinalOpsTest, AnErrorIsLoggedAndPassedOn) {
  for (const bool throws : {false, true}) {
    const auto final_ops =
        std::make_shared<FinalOps>(std::map<std::string,
                                            FinalOps::Op>{{"a",
                                                           [](const SessionContext&) -> absl::StatusOr<std::any> {
                                                             return 1;
                                                           }},
                                                          {"b",
                                                           [throws](const SessionContext&) -> absl::StatusOr<std::any> {
                                                             if (throws) throw std::runtime_error("no images left");
                                                             return absl::DataLossError("no images left");
                                                           }},
                                                          {"c", [](const SessionContext&) -> absl::StatusOr<std::any> {
                                                             return 3;
                                                           }}});
    SimulatedStore store(1, {"chief:0"});
    TrainingProcess process(store, "chief:0");
    Session session = process.MakeSession({}, {final_ops});
    ASSERT_EQ(session.Start(), absl::OkStatus());
    absl::Status status;
    EXPECT_THAT(Logged([&] { status = session.Close(); }), Contains("the final op 'b' has failed: no images left"));
    EXPECT_EQ(status.code(), throws ? absl::StatusCode::kInternal : absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()), HasSubstr("no images left"));
    EXPECT_EQ(final_ops->values().size(), 1u);
    EXPECT_TRUE(store.service(0).MakeView().clients->chief_done()) << "the ps are still told of the end";
  }
}

// In a final op, OutOfRange isn't the end of training's input.
TEST_F(FinalOpsTest, OutOfRangeIsAnErrorLikeOthers) {
  const auto final_ops = std::make_shared<FinalOps>(
      std::map<std::string, FinalOps::Op>{{"a", [](const SessionContext&) -> absl::StatusOr<std::any> {
                                             return absl::OutOfRangeError("no images left");
                                           }}});
  Session session = process_.MakeSession({}, {final_ops});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  EXPECT_EQ(session.Close(), absl::OutOfRangeError("no images left"));
}

}  // namespace
}  // namespace muster::final_ops_test
