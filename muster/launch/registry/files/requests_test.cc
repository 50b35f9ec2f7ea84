#include "muster/launch/registry/files/requests.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <string>

#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/registry/files/record_file.h"

namespace muster::requests_test {
namespace {

using ::testing::IsEmpty, ::testing::SizeIs;

class RequestsTest : public ::testing::Test {
 protected:
  bool IsEmptyFolder() const { return std::filesystem::is_empty(folder_); }

  const ScratchFolder scratch_;
  const std::string folder_ = scratch_ / "requests";
};

TEST_F(RequestsTest, AreAnsweredOnce) {
  EXPECT_THAT(AnswerRequests(folder_), IsEmpty()) << "there is no folder yet";
  const std::string gentle = WriteKillRequest(folder_, /*now=*/false).value();
  EXPECT_FALSE(TakeAnswer(folder_, gentle).value());
  auto requests = AnswerRequests(folder_);
  ASSERT_THAT(requests, SizeIs(1));
  EXPECT_EQ(requests[0].name, gentle);
  EXPECT_FALSE(requests[0].now);
  EXPECT_THAT(AnswerRequests(folder_), IsEmpty());
  EXPECT_TRUE(TakeAnswer(folder_, gentle).value());
  EXPECT_TRUE(IsEmptyFolder());

  const std::string hard = WriteKillRequest(folder_, /*now=*/true).value();
  requests = AnswerRequests(folder_);
  ASSERT_THAT(requests, SizeIs(1));
  EXPECT_TRUE(requests[0].now);
  EXPECT_TRUE(TakeAnswer(folder_, hard).value());
}

TEST_F(RequestsTest, OneThatIsTakenBackIsNotSeen) {
  TakeRequestBack(folder_, WriteKillRequest(folder_, false).value());
  EXPECT_THAT(AnswerRequests(folder_), IsEmpty());
}

TEST_F(RequestsTest, UnknownOnesAreAnsweredWithAnError) {
  TakeRequestBack(folder_, WriteKillRequest(folder_, false).value());
  for (const char* text : {"{\"kind\": \"later\"}", "[]", "not JSON", ""}) {
    ASSERT_TRUE(ReplaceFile(folder_ + "/abc.json", text, Durability::kProcess).ok());
    EXPECT_THAT(AnswerRequests(folder_), IsEmpty()) << text;
    EXPECT_FALSE(TakeAnswer(folder_, "abc").ok()) << text;
    EXPECT_TRUE(IsEmptyFolder()) << text;
  }
}

TEST_F(RequestsTest, AMarkChangesWhileSomebodyWatches) {
  EXPECT_EQ(WatchedMark(folder_), "");
  SayWatched(folder_);
  const std::string first = WatchedMark(folder_);
  EXPECT_NE(first, "");
  EXPECT_EQ(WatchedMark(folder_), first);
  SayWatched(folder_);
  EXPECT_NE(WatchedMark(folder_), first);
  EXPECT_THAT(AnswerRequests(folder_), IsEmpty()) << "it isn't a request";
  EXPECT_EQ(WatchedMark(folder_), WatchedMark(folder_));
}

TEST_F(RequestsTest, AnEarlierAttemptsAreDropped) {
  const std::string name = WriteKillRequest(folder_, false).value();
  DropRequests(folder_);
  EXPECT_THAT(AnswerRequests(folder_), IsEmpty());
  EXPECT_FALSE(TakeAnswer(folder_, name).value());
}

}  // namespace
}  // namespace muster::requests_test
