// `muster checkpoint` as a script uses it: the real command on checkpoints that the library wrote, its output and its
// exit codes.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/checkpoint/testing/checkpoint_test_data.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/muster_command.h"

namespace muster::checkpoint_command_test {
namespace {

using nlohmann::json;
using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;

// A model_dir with checkpoints of steps 100 and 200, of "w" in two parts with a slot and counters, and "s".
class CheckpointCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(PosixFileSystem().CreateDirectory(model_), absl::OkStatus());
    ASSERT_EQ(Save(PosixFileSystem(), model_, 100, "a"), absl::OkStatus());
    ASSERT_EQ(Save(PosixFileSystem(), model_, 200, "b"), absl::OkStatus());
  }

  static Said Muster(const std::vector<std::string>& words) { return RunMuster(Joined({"checkpoint"}, words)); }
  static std::string Out(const std::vector<std::string>& words) { return MusterOut(Joined({"checkpoint"}, words)); }
  static json Json(const std::vector<std::string>& words) { return MusterJson(Joined({"checkpoint"}, words)); }
  // Returns the command's only line on stderr. What it found before that may stand on stdout.
  static std::string Complaint(int exit_code, const std::vector<std::string>& words) {
    const Said said = Muster(words);
    EXPECT_EQ(said.exit_code, exit_code) << said.out << said.err;
    EXPECT_TRUE(said.err.ends_with('\n') && said.err.find('\n') == said.err.size() - 1) << said.err;
    EXPECT_THAT(said.err, testing::StartsWith("muster checkpoint"));
    return said.err;
  }
  std::string Part(int64_t step, int part) const { return JoinPath(model_, PartFileName(step, part, 2)); }
  static void FlipLastByte(const std::string& path) {
    auto bytes = PosixFileSystem().ReadFile(path).value();
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    ASSERT_EQ(WriteFileAtomically(PosixFileSystem(), path, AsBytes(bytes.data(), bytes.size())), absl::OkStatus());
  }

  ScratchFolder scratch_;
  const std::string model_ = scratch_ / "model";
};

TEST_F(CheckpointCommandTest, Ls) {
  const json list = Json({"ls", model_});
  ASSERT_EQ(list.size(), 2u) << list;
  EXPECT_EQ(list[0]["name"], "model.ckpt-100");
  EXPECT_EQ(list[0]["global_step"], 100);
  EXPECT_EQ(list[0]["time"], "1970-01-01T00:01:40Z");
  EXPECT_EQ(list[0]["parts"], 2);
  EXPECT_EQ(list[0]["newest"], false);
  EXPECT_EQ(list[1]["newest"], true);
  EXPECT_EQ(list[1]["damage"], nullptr);
  uint64_t bytes = *PosixFileSystem().FileSize(JoinPath(model_, ManifestFileName(100)));
  for (int part = 0; part < 2; ++part) bytes += *PosixFileSystem().FileSize(Part(100, part));
  EXPECT_EQ(list[0]["bytes"], bytes);

  ASSERT_EQ(PosixFileSystem().Remove(Part(100, 1)), absl::OkStatus());
  EXPECT_EQ(Json({"ls", model_})[0]["damage"], Part(100, 1) + " is missing");
  const std::string table = Out({"ls", model_});
  EXPECT_THAT(After(table, "NAME").size(), 1u);
  EXPECT_THAT(After(table, "model.ckpt-100"), ElementsAre(HasSubstr("DAMAGED: " + Part(100, 1) + " is missing")));
  EXPECT_THAT(After(table, "model.ckpt-200"), ElementsAre(HasSubstr("newest")));
}

TEST_F(CheckpointCommandTest, ABrokenStateFileIsAWarningBesideTheAnswer) {
  const std::string state = JoinPath(model_, "checkpoint");
  ASSERT_EQ(WriteFileAtomically(PosixFileSystem(), state, AsBytes("\x01\xff\x02", 3)), absl::OkStatus());
  const Said said = Muster({"ls", "--json", model_});
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_THAT(said.err, HasSubstr(state + " can't be understood: line '\\x01\\xff\\x02'"));
  const json list = json::parse(said.out);
  EXPECT_EQ(list[1]["name"], "model.ckpt-200");
  EXPECT_EQ(list[1]["newest"], true);
}

TEST_F(CheckpointCommandTest, Show) {
  const json shown = Json({"show", model_});
  EXPECT_EQ(shown["path"], JoinPath(model_, "model.ckpt-200"));
  EXPECT_EQ(shown["global_step"], 200);
  EXPECT_EQ(shown["parts"].size(), 2u);
  ASSERT_EQ(shown["variables"].size(), 2u);
  const json& w = shown["variables"][0];
  EXPECT_EQ(w["name"], "w");
  EXPECT_EQ(w["shape"], json({5, 2}));
  EXPECT_EQ(w["kind"], "trainable");
  EXPECT_EQ(w["slices"][1], json({{"part", 1}, {"tensor", "w/1"}, {"offset", 6}, {"shape", {2, 2}}}));
  EXPECT_EQ(w["slots"][0]["name"], "m");
  EXPECT_EQ(w["slots"][1]["stride"], 4);
  const std::string text = Out({"show", JoinPath(model_, "model.ckpt-100")});
  EXPECT_THAT(text, HasSubstr("global step  100\n"));
  EXPECT_THAT(text, HasSubstr("part 0@0[3,2] part 1@6[2,2]"));

  const json values = Json({"show", model_, "w", "w/m", "w/t", "s"});
  ASSERT_EQ(values.size(), 4u) << values;
  EXPECT_EQ(values[0]["values"], 10);
  EXPECT_EQ(values[0]["min"], WeightOf(200, 0));
  EXPECT_EQ(values[0]["max"], WeightOf(200, 9));
  EXPECT_EQ(values[0]["nans"], 0);
  EXPECT_EQ(values[1]["max"], -WeightOf(200, 0));
  EXPECT_EQ(values[2]["values"], 3);
  EXPECT_EQ(values[3]["mean"], 25);
  EXPECT_THAT(After(Out({"show", model_, "w"}), "w "), ElementsAre(HasSubstr("200004")));
}

TEST_F(CheckpointCommandTest, ReshardIsTheSameState) {
  const std::string output = scratch_ / "three";
  const std::vector<std::string> words = {"reshard", model_,        "--ps",    "3",        "--strategy",
                                          "greedy",  "--partition", "fixed:5", "--output", output};
  const std::string path = JoinPath(output, "model.ckpt-200");
  EXPECT_EQ(Out(words), path + "\n");
  EXPECT_EQ(Json({"show", output})["parts"].size(), 3u);
  EXPECT_THAT(Out({"verify", output}), HasSubstr(path + ".manifest.json: ok"));
  // The counters of w are 200, 205 and 202; no new stripe of two elements merges any of them.
  EXPECT_THAT(Out({"diff", model_, output}), IsEmpty());
  EXPECT_THAT(Complaint(2, words), HasSubstr("--output: " + output + " has a checkpoint already"));

  const std::string back = scratch_ / "back";
  EXPECT_EQ(Out({"reshard", output, "--ps", "1", "--output", back}), JoinPath(back, "model.ckpt-200") + "\n");
  const Said outcome = Muster({"diff", model_, back});
  EXPECT_EQ(outcome.exit_code, 1) << "w is one slice: its second stripe has the larger of the two that it covers";
  EXPECT_EQ(outcome.out, "slot 'w/t': counters of 2 of 10 elements differ, first at [3,0] (202 and 205)\n");
}

TEST_F(CheckpointCommandTest, Diff) {
  const Said outcome = Muster({"diff", JoinPath(model_, "model.ckpt-100"), model_});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, IsEmpty());
  EXPECT_THAT(After(outcome.out, "global step: "), ElementsAre("100 and 200"));
  EXPECT_THAT(After(outcome.out, "variable 'w': "),
              ElementsAre(HasSubstr("10 of 10 values differ: max abs 100000, max relative 0.5, first at [0,0]")));
  EXPECT_THAT(After(outcome.out, "slot 'w/t': "), ElementsAre(HasSubstr("10 of 10")));
  EXPECT_THAT(Muster({"diff", "--tolerance", "1e6", JoinPath(model_, "model.ckpt-100"), model_}).out,
              testing::Not(HasSubstr("variable")));
  EXPECT_THAT(Out({"diff", model_, JoinPath(model_, "model.ckpt-200")}), IsEmpty());
}

TEST_F(CheckpointCommandTest, VerifyNamesTheDamagedFile) {
  EXPECT_EQ(After(Out({"verify", model_}), model_).size(), 3u);
  EXPECT_EQ(After(Out({"verify", model_, "--all"}), model_).size(), 6u);
  FlipLastByte(Part(100, 0));
  EXPECT_EQ(After(Out({"verify", model_}), model_).size(), 3u) << "the newest is whole";
  EXPECT_THAT(Complaint(1, {"verify", model_, "--all"}), HasSubstr(Part(100, 0) + " is damaged: its checksum is"));
  EXPECT_THAT(Complaint(1, {"verify", JoinPath(model_, "model.ckpt-100")}), HasSubstr(Part(100, 0)));
  const std::string output = scratch_ / "out";
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"diff", model_, JoinPath(model_, "model.ckpt-100")},
        std::vector<std::string>{"reshard", JoinPath(model_, "model.ckpt-100"), "--ps", "2", "--output", output}})
    EXPECT_THAT(Complaint(1, words), HasSubstr(Part(100, 0)));
  EXPECT_FALSE(PosixFileSystem().Exists(output));
  FlipLastByte(JoinPath(model_, ManifestFileName(200)));
  EXPECT_THAT(Complaint(1, {"verify", model_}), HasSubstr(ManifestFileName(200) + " is damaged"));
  EXPECT_THAT(Complaint(1, {"show", model_}), HasSubstr(ManifestFileName(200) + " is damaged"));
}

TEST_F(CheckpointCommandTest, MistakesAreOneLine) {
  EXPECT_THAT(Complaint(2, {}), HasSubstr("accepted: ls, show, diff, verify, load, reshard"));
  EXPECT_THAT(Complaint(2, {"lst"}), HasSubstr("\"lst\" (nearest: ls); accepted: ls, show"));
  EXPECT_THAT(Complaint(2, {"ls"}), HasSubstr("muster checkpoint ls: DIR is required"));
  EXPECT_THAT(Complaint(2, {"ls", scratch_ / "nowhere"}), HasSubstr(scratch_ / "nowhere"));
  EXPECT_THAT(Complaint(2, {"show", JoinPath(model_, "model.ckpt-300")}), HasSubstr("model.ckpt-300 is neither"));
  EXPECT_THAT(Complaint(2, {"show", model_, "u"}), HasSubstr("NAME: \"u\"; accepted: a variable"));
  EXPECT_THAT(Complaint(2, {"show", model_, "w/u"}), HasSubstr("NAME: \"w/u\""));
  EXPECT_THAT(Complaint(2, {"show", model_, "--jason"}), HasSubstr("--jason"));
  EXPECT_THAT(Complaint(2, {"diff", model_}), HasSubstr("B is required"));
  EXPECT_THAT(Complaint(2, {"diff", model_, model_, "--tolerance", "-1"}), HasSubstr("--tolerance: \"-1\""));
  const std::string output = scratch_ / "out";
  EXPECT_THAT(Complaint(2, {"reshard", model_, "--output", output}), HasSubstr("--ps is required"));
  EXPECT_THAT(Complaint(2, {"reshard", model_, "--ps", "2"}), HasSubstr("--output is required"));
  EXPECT_THAT(Complaint(2, {"reshard", model_, "--ps", "none", "--output", output}), HasSubstr("--ps: \"none\""));
  EXPECT_THAT(Complaint(2, {"reshard", model_, "--ps", "2", "--strategy", "x", "--output", output}),
              HasSubstr("greedy_sorted"));
  EXPECT_THAT(Complaint(2, {"reshard", model_, "--ps", "2", "--partition", "fixed:0", "--output", output}),
              HasSubstr("fixed"));
  EXPECT_FALSE(PosixFileSystem().Exists(output));
  ASSERT_EQ(PosixFileSystem().CreateDirectory(scratch_ / "empty"), absl::OkStatus());
  EXPECT_THAT(Complaint(1, {"show", scratch_ / "empty"}), HasSubstr("no checkpoint in " + scratch_ / "empty"));
  EXPECT_EQ(Json({"ls", scratch_ / "empty"}), json::array());
}

TEST_F(CheckpointCommandTest, HelpTeachesWithAnExample) {
  for (const std::string command : {"ls", "show", "diff", "verify", "reshard"})
    EXPECT_THAT(Out({command, "--help"}), HasSubstr("  muster checkpoint " + command + " "));
}

}  // namespace
}  // namespace muster::checkpoint_command_test
