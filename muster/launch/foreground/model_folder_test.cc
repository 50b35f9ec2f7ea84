#include "muster/launch/foreground/model_folder.h"

#include <gmock/gmock.h>

namespace muster::model_folder_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr;

ClusterRequest WithEvaluatorOn(const std::string& host) {
  ClusterRequest request{.workers = 2, .evaluator = true, .model_dir = "/data/model"};
  request.hosts = {{{kWorkerJob, 0}, "h1"}, {{kWorkerJob, 1}, "h2"}, {{kEvaluatorJob, 0}, host}};
  return request;
}

TEST(UnsharedModelFolderText, SaysWhatDoesNotWorkWhenTheEvaluatorIsElsewhere) {
  EXPECT_THAT(UnsharedModelFolderText(WithEvaluatorOn("h2")),
              AllOf(HasSubstr("the evaluator on h2 finds no checkpoint unless /data/model is a folder that it shares "
                              "with h1, where worker:0 writes all of them; training works without"),
                    HasSubstr("placement: {evaluator: HOST}")));
}

TEST(UnsharedModelFolderText, IsSilentWhereTheyShareOne) {
  EXPECT_EQ(UnsharedModelFolderText(WithEvaluatorOn("h1")), "");
  EXPECT_EQ(UnsharedModelFolderText({.workers = 2, .evaluator = true}), "") << "on this machine";
}

}  // namespace
}  // namespace muster::model_folder_test
