#include "muster/cluster/cluster_spec.h"

#include <gmock/gmock.h>

namespace muster::cluster_spec_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr;

constexpr char kMixed[] = R"({"chief":["c:1"],"ps":["[::1]:2","p:3"],"worker":{"1":"w:1","4":"w:4","5":"w:5"}})";

std::string Message(std::string_view text) {
  const auto spec = ClusterSpec::FromJson(text);
  EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(spec.status().message());
}

TEST(ClusterSpec, JsonRoundTrip) {
  for (const char* text : {kMixed, "{}", R"({"worker":{}})", R"({"a":["x:1"]})"}) {
    const auto spec = ClusterSpec::FromJson(text).value();
    EXPECT_EQ(spec.ToJson(), text);
    EXPECT_EQ(ClusterSpec::FromJson(spec.ToJson()).value(), spec);
  }
}

TEST(ClusterSpec, AJobIsAListOnlyWhereItIsDense) {
  EXPECT_EQ(ClusterSpec::FromJson(R"({"ps":{"1":"b:1","0":"a:1"}})").value().ToJson(), R"({"ps":["a:1","b:1"]})");
  EXPECT_EQ(ClusterSpec::FromJson(R"({"ps":[]})").value().ToJson(), R"({"ps":{}})");
}

TEST(ClusterSpec, Queries) {
  const ClusterSpec spec = ClusterSpec::FromJson(kMixed).value();
  EXPECT_THAT(spec.jobs(), ElementsAre("chief", "ps", "worker"));
  EXPECT_EQ(spec.num_tasks("worker"), 3);
  EXPECT_EQ(spec.index_limit("worker"), 6);
  EXPECT_EQ(spec.num_tasks(), 6);
  EXPECT_EQ(spec.num_tasks("nobody"), 0);
  EXPECT_EQ(spec.index_limit("nobody"), 0);
  EXPECT_TRUE(spec.HasTask({"worker", 4}));
  EXPECT_FALSE(spec.HasTask({"worker", 0}));
  EXPECT_EQ(spec.TaskAddress({"ps", 0}).value(), "[::1]:2");
  EXPECT_THAT(spec.DenseList("ps").value(), ElementsAre("[::1]:2", "p:3"));
  EXPECT_EQ(spec.DenseList("worker").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(spec.AllTasks().size(), 6);
  EXPECT_EQ(spec.Summary(), "chief:0, ps:0-1, worker:1, worker:4-5");
  const auto missing = spec.TaskAddress({"ps", 2});
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), AllOf(HasSubstr("ps:2"), HasSubstr("ps:0-1")));
}

TEST(ClusterSpec, MistakesNameTheKeyAndTheValue) {
  EXPECT_THAT(Message("["), HasSubstr("line 1, column 2"));
  EXPECT_THAT(Message("[]"), AllOf(HasSubstr("cluster: a list"), HasSubstr("accepted")));
  EXPECT_THAT(Message(R"({"ps":"a:1"})"), AllOf(HasSubstr("cluster.ps: \"a:1\""), HasSubstr("accepted")));
  EXPECT_THAT(Message(R"({"ps":["a:1",5]})"), AllOf(HasSubstr("cluster.ps[1]: 5"), HasSubstr("accepted")));
  EXPECT_THAT(Message(R"({"ps":["a:1","b"]})"), AllOf(HasSubstr("cluster.ps[1]"), HasSubstr("\"b\" has no port")));
  EXPECT_THAT(Message(R"({"ps":{"x":"a:1"}})"), AllOf(HasSubstr("cluster.ps: \"x\""), HasSubstr("accepted")));
  EXPECT_THAT(Message(R"({"ps":{"-1":"a:1"}})"), AllOf(HasSubstr("cluster.ps: \"-1\""), HasSubstr("accepted")));
  EXPECT_THAT(Message(R"({"ps":{"1":"a:1","01":"b:1"}})"), HasSubstr("ps:1 is there twice"));
  EXPECT_THAT(Message(R"({"p s":["a:1"]})"), HasSubstr("\"p s\" is not a job name"));
  EXPECT_THAT(Message(R"({"ps":["a:1"],"worker":["b:1","A:01"]})"),
              AllOf(HasSubstr("cluster.worker[1]"), HasSubstr("\"A:01\" of worker:1 is that of ps:0 too")));
}

TEST(ClusterSpec, IsBuiltFromLists) {
  EXPECT_EQ(ClusterSpec::FromLists({{"ps", {"a:1", "b:1"}}}).value().ToJson(), R"({"ps":["a:1","b:1"]})");
  EXPECT_THAT(std::string(ClusterSpec::FromLists({{"ps", {"a:1", "a:1"}}}).status().message()), HasSubstr("ps[1]"));
}

}  // namespace
}  // namespace muster::cluster_spec_test
