#include "muster/launch/far_home/parcel.h"

#include <gmock/gmock.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/launch/far_home/parcel_receiver.h"
#include "muster/launch/testing/far_homes.h"

namespace muster::parcel_test {
namespace {

using ::testing::HasSubstr;

class ParcelTest : public FarHomesFixture {
 protected:
  ParcelOrder Order() const { return {.id = id_, .job = kJob, .tree = tree_}; }
  absl::Status Send() { return SendParcel(home_, engine_, Order()); }
  nlohmann::json Head(const Parcel& parcel, uint64_t offset) const {
    return {{"parcel", parcel.name()}, {"size", parcel.size()}, {"job", kJob}, {"tree", tree_}, {"offset", offset}};
  }
  // Has the job take a parcel with one file of this name.
  absl::Status Take(const std::string& path, const std::string& kind, const std::string& to = "") {
    const std::string text =
        absl::StrCat(nlohmann::json({{"id", "1"}, {"job", kJob}, {"home", "/h"}, {"tree", tree_}}).dump(), "\n",
                     nlohmann::json({{"path", path}, {"kind", kind}, {"bytes", 0}, {"to", to}}).dump(), "\n");
    const nlohmann::json head = {
        {"parcel", HexSha256(text)}, {"size", text.size()}, {"job", kJob}, {"tree", tree_}, {"offset", 0}};
    return AnswerReceive(far_, id_, {.head = head, .bytes = text}).status();
  }

  const ExperimentId id_ = Submit();
};

TEST_F(ParcelTest, TheJobHasTheExperimentAndItsCode) {
  ASSERT_TRUE(Send().ok());
  EXPECT_TRUE(HasReceived(far_, id_, kJob));
  EXPECT_EQ(Get(Far(), id_).state, RunState::kCreated);
  EXPECT_EQ(Far().Specification(1)->project, "toaster");
  const std::string tree = absl::StrCat("code/", tree_, "/");
  EXPECT_EQ(far_scratch_.Read(tree + "train.py"), "print(1)\n");
  EXPECT_EQ(std::filesystem::read_symlink(far_scratch_ / (tree + "link.py")), "train.py");
  EXPECT_EQ(access((far_scratch_ / (tree + "run.sh")).c_str(), X_OK), 0);
  EXPECT_EQ(ReadJobFile(far_.job(id_)).value()->id, kJob);
  EXPECT_FALSE(far_scratch_.Has("experiments/1/incoming"));
}

TEST_F(ParcelTest, ASecondSenderSendsNothing) {
  ASSERT_TRUE(Send().ok());
  const int before = asked_;
  ASSERT_TRUE(Send().ok());
  EXPECT_EQ(asked_, before + 1);
}

TEST_F(ParcelTest, PiecesThatComeTwiceOrWhoseAnswersAreCutChangeNothing) {
  scratch_.Write("project/big", std::string(3 << 20, 'b'));
  const ExperimentId id = id_;
  const auto files = ListProject(scratch_ / "project", {});
  tree_ = StoreTree(scratch_ / "project", *files, home_.trees(), [](int64_t) {}).value();
  twice_ = 3;
  cut_ = 2;
  const absl::Status sent = Send();
  ASSERT_TRUE(sent.ok()) << sent;
  EXPECT_TRUE(HasReceived(far_, id, kJob));
  EXPECT_EQ(far_scratch_.Read(absl::StrCat("code/", tree_, "/big")).size(), size_t{3} << 20);
}

TEST_F(ParcelTest, AnotherSenderGoesOnWithWhatHasCome) {
  const Parcel parcel = Parcel::Make(home_, Order()).value();
  const std::string half = parcel.Read(0, parcel.size() / 2).value();
  const auto taken = AnswerReceive(far_, id_, {.head = Head(parcel, 0), .bytes = half});
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(taken->head.at("have"), half.size());
  const auto again = AnswerReceive(far_, id_, {.head = Head(parcel, 0), .bytes = half});
  EXPECT_EQ(again->head.at("have"), half.size()) << "what comes twice isn't added";
  EXPECT_FALSE(HasReceived(far_, id_, kJob));
  ASSERT_TRUE(Send().ok());
  EXPECT_TRUE(HasReceived(far_, id_, kJob));
}

TEST_F(ParcelTest, AParcelWithAnotherChecksumIsSentOnceMore) {
  const Parcel parcel = Parcel::Make(home_, Order()).value();
  std::string bytes = parcel.Read(0, parcel.size()).value();
  bytes.back() ^= 1;
  EXPECT_TRUE(absl::IsDataLoss(AnswerReceive(far_, id_, {.head = Head(parcel, 0), .bytes = bytes}).status()));
  EXPECT_FALSE(HasReceived(far_, id_, kJob));
  ASSERT_TRUE(Send().ok());
}

TEST_F(ParcelTest, CodeThatTheJobHasIsNotSent) {
  const uint64_t whole = Parcel::Make(home_, Order()).value().size();
  ASSERT_TRUE(Send().ok());
  ASSERT_TRUE(PosixFileSystem().RemoveTree(far_.experiments()).ok());
  ParcelOrder without = Order();
  without.with_tree = false;
  EXPECT_LT(Parcel::Make(home_, without).value().size(), whole);
  ASSERT_TRUE(Send().ok());
  EXPECT_TRUE(HasReceived(far_, id_, kJob));
}

TEST_F(ParcelTest, NamesThatAParcelMayNotHaveAreRefused) {
  for (const char* path : {"../x", "/etc/x", "lock", "records/../x", "logs/worker.1/live", "requests/x", "far/1"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Take(path, "f"))) << path;
    EXPECT_FALSE(HasReceived(far_, id_, kJob));
  }
  EXPECT_FALSE(far_scratch_.Has("experiments/x"));
}

TEST_F(ParcelTest, CodeOfAnotherHashIsRefused) {
  EXPECT_TRUE(absl::IsDataLoss(Take("tree/train.py", "f")));
  EXPECT_FALSE(far_scratch_.Has(absl::StrCat("code/", tree_)));
}

TEST_F(ParcelTest, AnotherAttemptBeginsItsLogsBehindThoseThatAreHere) {
  scratch_.Write("experiments/1/logs/worker.1/000002.log", "2026-01-31T07:23:46.123456Z o text\n");
  ASSERT_TRUE(Send().ok());
  EXPECT_TRUE(far_scratch_.Has("experiments/1/logs/worker.1/000003.log"));
}

TEST_F(ParcelTest, AwaitsWhatComesWithinThePatience) {
  ASSERT_TRUE(Send().ok());
  EXPECT_TRUE(AwaitParcel(far_, id_, kJob, absl::Seconds(1), clock_, [](absl::Duration) { FAIL(); }).ok());
  const absl::Status other = AwaitParcel(far_, id_, "muster-2", absl::Seconds(1), clock_,
                                         [this](absl::Duration pause) { clock_.Advance(pause); });
  EXPECT_TRUE(absl::IsDeadlineExceeded(other));
  EXPECT_THAT(std::string(other.message()), HasSubstr("may be off or asleep"));
}

TEST_F(ParcelTest, ThePatienceBeginsAnewWithEachPiece) {
  const Parcel parcel = Parcel::Make(home_, Order()).value();
  uint64_t offset = 0;
  const absl::Status came = AwaitParcel(far_, id_, kJob, absl::Seconds(10), clock_, [&](absl::Duration) {
    clock_.Advance(absl::Seconds(9));
    const std::string bytes = parcel.Read(offset, parcel.size() / 3 + 1).value();
    ASSERT_TRUE(AnswerReceive(far_, id_, {.head = Head(parcel, offset), .bytes = bytes}).ok());
    offset += bytes.size();
  });
  EXPECT_TRUE(came.ok()) << came;
}

TEST_F(ParcelTest, TheJobLingersUntilAllWasFetched) {
  ASSERT_TRUE(Send().ok());
  int pauses = 0;
  const auto fetch = [&](absl::Duration pause) {
    clock_.Advance(pause);
    if (++pauses == 3) far_scratch_.Write("experiments/1/collected", kJob);
  };
  EXPECT_TRUE(Linger(far_, id_, kJob, absl::Hours(1), clock_, fetch));
  EXPECT_EQ(pauses, 3);
  far_scratch_.Write("experiments/1/collected", "muster-0");
  EXPECT_FALSE(
      Linger(far_, id_, kJob, absl::Minutes(1), clock_, [this](absl::Duration pause) { clock_.Advance(pause); }));
}

}  // namespace
}  // namespace muster::parcel_test
