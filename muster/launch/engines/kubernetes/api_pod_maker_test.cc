#include "muster/launch/engines/kubernetes/api_pod_maker.h"

#include <gmock/gmock.h>

#include <optional>

#include "muster/base/clock.h"
#include "muster/base/testing/scratch_folder.h"

namespace muster::api_pod_maker_test {
namespace {

using ::testing::HasSubstr;

// Turns a hang into a failed test.
constexpr absl::Duration kHang = absl::Minutes(1);

class ApiPodMakerTest : public ::testing::Test {
 protected:
  absl::Status Make(const std::string& program) {
    scratch_.Write("program", program);
    ApiPodMaker maker({"PATH=/usr/bin:/bin"}, loop_, {"/bin/sh", scratch_ / "program"});
    std::optional<absl::Status> made;
    maker.Make("h1", 1, [&made](const absl::Status& status) { made = status; });
    const absl::Time give_up = RealClock().Now() + kHang;
    while (!made.has_value() && RealClock().Now() < give_up) loop_.RunOnce(give_up);
    return made.value_or(absl::DeadlineExceededError("no answer"));
  }

  const ScratchFolder scratch_;
  FdLoop loop_{RealClock()};
};

TEST_F(ApiPodMakerTest, AnotherProcessAsksTheApi) {
  EXPECT_EQ(Make("[ $1 = h1 ]"), absl::OkStatus());
  EXPECT_THAT(std::string(Make("echo refused >&2; exit 1").message()), HasSubstr("refused"));
}

TEST_F(ApiPodMakerTest, OneThatTakesLongEndsWithIt) {
  scratch_.Write("program", "sleep 600");
  ApiPodMaker maker({"PATH=/usr/bin:/bin"}, loop_, {"/bin/sh", scratch_ / "program"});
  const auto unanswered = [](const absl::Status&) { ADD_FAILURE() << "it was replaced"; };
  maker.Make("h1", 1, unanswered);
  maker.Make("h1", 2, unanswered);
}

}  // namespace
}  // namespace muster::api_pod_maker_test
