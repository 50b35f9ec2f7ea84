// `muster cluster`, `muster place` and `muster device` as scripts use them: the real command, its stdout read as JSON;
// a mistake gives one line on stderr, exit code 2 and nothing on stdout.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/base/version.h"
#include "tests/process/testing/muster_command.h"

namespace muster::cluster_commands_test {
namespace {

using nlohmann::json;
using ::testing::AllOf, ::testing::HasSubstr, ::testing::Not;

class ClusterCommands : public ::testing::Test {
 protected:
  std::string File(const std::string& text) const {
    scratch_.Write("file", text);
    return scratch_ / "file";
  }

  static ProcessOptions With(const std::string& tf_config) {
    if (tf_config.empty()) return {};
    return {.environment = {{"TF_CONFIG", tf_config}}};
  }

  static json Json(const std::vector<std::string>& words, const std::string& tf_config = "") {
    const std::string out = MusterOut(words, With(tf_config));
    EXPECT_TRUE(out.ends_with('\n') && out.find('\n') == out.size() - 1) << "not one line: " << out;
    return json::parse(out, nullptr, false);
  }

  static std::string Mistake(const std::vector<std::string>& words, const std::string& tf_config = "") {
    const std::string line = MusterMistake(words, With(tf_config));
    EXPECT_THAT(line, AllOf(HasSubstr("muster"), HasSubstr("accepted: ")));
    return line;
  }

  const ScratchFolder scratch_;
};

constexpr char kCluster[] = R"("cluster":{"chief":["c:1"],"ps":["p0:1","[::1]:1"],"worker":{"1":"w:1"}})";

std::string TfConfig(const std::string& type, int index) {
  return absl::StrCat("{", kCluster, R"(,"task":{"type":")", type, "\",\"index\":", index, R"(},"model_dir":"/m"})");
}

TEST_F(ClusterCommands, ClusterOfTfConfig) {
  EXPECT_EQ(Json({"cluster"}, TfConfig("ps", 1)),
            json::parse(R"({"cluster":{"chief":["c:1"],"ps":["p0:1","[::1]:1"],"worker":{"1":"w:1"}},
                            "task":{"type":"ps","index":1},"is_chief":false,"num_ps":2,"num_workers":2,"global_id":4,
                            "master":"[::1]:1","model_dir":"/m"})"));
  EXPECT_EQ(
      Json({"cluster"}, TfConfig("evaluator", 0)),
      json::parse(R"({"cluster":{},"task":{"type":"evaluator","index":0},"is_chief":false,"num_ps":0,"num_workers":0,
                            "global_id":null,"master":"","model_dir":"/m"})"));
}

TEST_F(ClusterCommands, ClusterOfFlagsAndOfNothing) {
  const Said flags = RunMuster({"cluster", "--ps_hosts", "p:1", "--worker_hosts=w:1,v:1", "--job_name", "worker",
                                "--task_index=0", "--model_dir=/flag", "--chief_hosts="},
                               With(TfConfig("ps", 1)));
  EXPECT_EQ(flags.exit_code, 0);
  EXPECT_EQ(flags.err, "muster cluster: role from flags; not used: TF_CONFIG\n");
  EXPECT_EQ(json::parse(flags.out, nullptr, false),
            json::parse(R"({"cluster":{"ps":["p:1"],"worker":["w:1","v:1"]},"task":{"type":"worker","index":0},
                            "is_chief":true,"num_ps":1,"num_workers":2,"global_id":0,"master":"w:1","model_dir":"/flag"})"));
  EXPECT_EQ(Json({"cluster"}),
            json::parse(R"({"cluster":{},"task":{"type":"worker","index":0},"is_chief":true,"num_ps":0,"num_workers":1,
                            "global_id":0,"master":"","model_dir":""})"));
}

TEST_F(ClusterCommands, ClusterMistakes) {
  EXPECT_THAT(Mistake({"cluster"}, "{"), HasSubstr("TF_CONFIG: not JSON"));
  EXPECT_THAT(Mistake({"cluster"}, TfConfig("ps", 2)), HasSubstr("TF_CONFIG task.index: 2 is out of range"));
  EXPECT_THAT(Mistake({"cluster"}, TfConfig("a\nb", 0)), HasSubstr("TF_CONFIG: not JSON"));
  EXPECT_THAT(Mistake({"cluster"}, TfConfig("a\\nb", 0)), HasSubstr("TF_CONFIG task.type: \"a\\nb\""));
  EXPECT_THAT(Mistake({"cluster", "--ps_host=a:1"}), HasSubstr("\"--ps_host=a:1\""));
  EXPECT_THAT(Mistake({"cluster", "worker"}), HasSubstr("\"worker\""));
  EXPECT_THAT(Mistake({"cluster", "--ps_hosts"}), HasSubstr("--ps_hosts"));
  EXPECT_THAT(Mistake({"cluster", "--task_index", "-1"}), HasSubstr("--task_index: \"-1\""));
}

TEST_F(ClusterCommands, Place) {
  const std::string file =
      File(R"([{"name":"w","shape":[5,2],"dtype":"float32"},{"name":"s","shape":[],"dtype":"int64"}])");
  EXPECT_EQ(
      Json({"place", "--ps", "2", "--strategy", "greedy", "--partition", "fixed:2", file}),
      json::parse(R"({"placement":[{"name":"w","shard":0,"ps":0,"bytes":24},{"name":"w","shard":1,"ps":1,"bytes":16},
                            {"name":"s","shard":0,"ps":1,"bytes":8}],"load_bytes":[24,24]})"));
  EXPECT_EQ(Json({"place", "--ps=3", file})["load_bytes"], json({40, 8, 0}));
  EXPECT_EQ(Json({"place", "--ps=2", "--strategy=greedy_sorted", File("[]")}),
            json::parse(R"({"placement":[],"load_bytes":[0,0]})"));
}

TEST_F(ClusterCommands, PlaceMistakes) {
  const std::string file = File(R"([{"name":"w","shape":[5,2],"dtype":"flo\nat"}])");
  EXPECT_THAT(Mistake({"place", "--ps", "1", file}),
              AllOf(HasSubstr(file), HasSubstr("[0].dtype"), HasSubstr("flo\\x0aat")));
  EXPECT_THAT(Mistake({"place", "--ps", "0", file}), HasSubstr("--ps: \"0\""));
  EXPECT_THAT(Mistake({"place", "--ps", "1", "--strategy", "best", file}), HasSubstr("\"best\""));
  EXPECT_THAT(Mistake({"place", "--ps", "1", "--partition", "fixed:0", file}), HasSubstr("\"fixed:0\""));
  EXPECT_THAT(Mistake({"place", "--ps", "1", scratch_ / "none"}), HasSubstr(scratch_ / "none"));
  EXPECT_THAT(Mistake({"place", "--ps", "1", "--colour", file}), HasSubstr("\"--colour\""));
  EXPECT_THAT(Mistake({"place", file}), HasSubstr("--ps is required"));
  EXPECT_THAT(Mistake({"place", "--ps", "1"}), HasSubstr("FILE is required"));
}

TEST_F(ClusterCommands, Device) {
  EXPECT_EQ(Json({"device", "job:worker/task:0"}), "/job:worker/task:0");
  EXPECT_EQ(Json({"device", "/job:ps/task:0/gpu:1", "/task:3", "/cpu:0"}), "/job:ps/task:3/device:CPU:0");
  EXPECT_EQ(Json({"device", ""}), "");
  EXPECT_THAT(Mistake({"device", "/job:ps", "/disk:0"}), HasSubstr("\"/disk:0\""));
  EXPECT_THAT(Mistake({"device"}), HasSubstr("STRING is required"));
}

TEST_F(ClusterCommands, HelpTeachesWithExamples) {
  for (const char* command : {"cluster", "place", "device"}) {
    EXPECT_THAT(MusterOut({command, "--help"}),
                AllOf(HasSubstr("Examples:"), HasSubstr(absl::StrCat("muster ", command, " "))));
    EXPECT_THAT(MusterOut({"--help"}), HasSubstr(command));
  }
}

TEST_F(ClusterCommands, TheCommandSaysItsVersion) {
  EXPECT_EQ(MusterOut({"--version"}), absl::StrCat("muster ", kMusterVersion, "\n"));
}

TEST_F(ClusterCommands, AnUnknownCommandIsNamedAndTheKnownOnesToo) {
  EXPECT_THAT(Mistake({"palce"}),
              AllOf(HasSubstr("\"palce\""), HasSubstr("cluster, place, device"), Not(HasSubstr("supervise"))));
  EXPECT_THAT(Mistake({}), HasSubstr("no command"));
}

}  // namespace
}  // namespace muster::cluster_commands_test
