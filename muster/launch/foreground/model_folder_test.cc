#include "muster/launch/foreground/model_folder.h"

#include <gmock/gmock.h>

namespace muster::model_folder_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::SizeIs;

ClusterRequest WithEvaluatorOn(const std::string& host) {
  ClusterRequest request{.workers = 2, .evaluator = true, .model_dir = "/data/model"};
  request.hosts = {{{kWorkerJob, 0}, "h1"}, {{kWorkerJob, 1}, "h2"}, {{kEvaluatorJob, 0}, host}};
  return request;
}

TEST(UnsharedModelFolderLines, SayWhatDoesNotWorkWhenTheEvaluatorIsElsewhere) {
  EXPECT_THAT(
      UnsharedModelFolderLines(WithEvaluatorOn("h2"), ""),
      ElementsAre(AllOf(HasSubstr("the evaluator on h2 finds no checkpoint unless /data/model is a folder that it "
                                  "shares with h1, where worker:0 writes all of them; training works without"),
                        HasSubstr("placement: {evaluator: HOST}"))));
}

TEST(UnsharedModelFolderLines, SayWhatWorksWhenPsAreElsewhere) {
  ClusterRequest request = WithEvaluatorOn("h1");
  request.hosts[{kPsJob, 0}] = "h1";
  EXPECT_THAT(UnsharedModelFolderLines(request, ""), IsEmpty());
  request.hosts[{kPsJob, 1}] = "h2";
  EXPECT_THAT(UnsharedModelFolderLines(request, ""),
              ElementsAre("unless h2 shares /data/model with h1, worker:0 alone writes to h1 and restores from there, "
                          "for all parameter servers: training works; without h1 there are no checkpoints"));
  for (const int index : {2, 3}) request.hosts[{kPsJob, index}] = "h3";
  EXPECT_THAT(UnsharedModelFolderLines(request, ""),
              ElementsAre(HasSubstr("unless h2, h3 share /data/model with h1, ")));
  request.hosts[{kEvaluatorJob, 0}] = "h3";
  EXPECT_THAT(UnsharedModelFolderLines(request, ""), SizeIs(2));
  request.chiefs = 1;
  request.hosts[{kChiefJob, 0}] = "h2";
  EXPECT_THAT(UnsharedModelFolderLines(request, "")[0], HasSubstr("unless h1, h3 share /data/model with h2, chief:0 "));
}

TEST(UnsharedModelFolderLines, AreNoneWhereThereIsNothingToSay) {
  EXPECT_THAT(UnsharedModelFolderLines(WithEvaluatorOn("h1"), ""), IsEmpty());
  EXPECT_THAT(UnsharedModelFolderLines({.workers = 2, .evaluator = true}, ""), IsEmpty()) << "on this machine";
  ClusterRequest request = WithEvaluatorOn("h1");
  request.hosts[{kPsJob, 0}] = "h2";
  request.model_dir = "";
  EXPECT_THAT(UnsharedModelFolderLines(request, ""), IsEmpty()) << "only the program knows where it writes, if it does";
}

TEST(UnsharedModelFolderLines, AreNoneForAFolderInOneThatAllHostsSee) {
  ClusterRequest request = WithEvaluatorOn("h2");
  request.hosts[{kPsJob, 0}] = "h2";
  for (const char* folder : {"/shared/toy", "/shared/toy/a/../model", "model", ""}) {
    request.model_dir = folder;
    EXPECT_THAT(UnsharedModelFolderLines(request, "/shared/toy"), IsEmpty()) << folder;
  }
  for (const char* folder : {"/tmp/model", "/shared", "/shared/toy2", "/shared/toy/../model"}) {
    request.model_dir = folder;
    EXPECT_THAT(UnsharedModelFolderLines(request, "/shared/toy"), SizeIs(2)) << folder;
  }
}

}  // namespace
}  // namespace muster::model_folder_test
