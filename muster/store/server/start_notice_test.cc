#include "muster/store/server/start_notice.h"

#include <gmock/gmock.h>

#include <string>

#include "muster/base/log.h"
#include "muster/store/testing/simulated_store.h"

namespace muster::start_notice_test {
namespace {

using ::testing::HasSubstr, ::testing::IsEmpty;

const std::vector<VariableSpec> kVariables = {{.name = "w", .shape = {4}}};

class StartNoticeTest : public ::testing::Test {
 protected:
  // What is logged when the notice is looked at after that time.
  std::string LogAfter(absl::Duration time) {
    ::testing::internal::CaptureStderr();
    SetUpLog("");
    notice_.Check(began_ + time, store_.service(0).MakeView());
    return ::testing::internal::GetCapturedStderr();
  }

  FaultScript script_;
  SimulatedStore store_{1, {"chief:0", "worker:0"}};
  const absl::Time began_ = store_.loop.Now();
  StartNotice notice_{began_};
};

TEST_F(StartNoticeTest, NamesWhoHasJoinedUntilThereIsAModel) {
  EXPECT_THAT(LogAfter(absl::Seconds(9)), IsEmpty());
  EXPECT_THAT(LogAfter(absl::Seconds(10)),
              HasSubstr("ps:0 waits since 10s for the chief to initialise the model: no task has joined"));
  auto worker = store_.Client("worker:0", script_);
  ASSERT_EQ(worker->Join(false), absl::OkStatus());
  EXPECT_THAT(LogAfter(absl::Seconds(20)), HasSubstr("since 20s for the chief to initialise the model: worker:0 ("));
  auto chief = store_.Client("chief:0", script_);
  ASSERT_EQ(chief->Join(true), absl::OkStatus());
  EXPECT_THAT(LogAfter(absl::Seconds(40)), HasSubstr("chief:0 (the chief, "));
  const WorkerModel model(kVariables, RuleSpec{}, 1);
  chief->Bind(model.binding);
  ASSERT_EQ(chief->Initialize(0, 0, nullptr), absl::OkStatus());
  EXPECT_THAT(LogAfter(absl::Hours(1)), IsEmpty());
  EXPECT_EQ(notice_.next(), absl::InfiniteFuture());
}

}  // namespace
}  // namespace muster::start_notice_test
