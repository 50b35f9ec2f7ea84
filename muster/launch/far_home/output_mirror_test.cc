#include "muster/launch/far_home/output_mirror.h"

#include <gmock/gmock.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "muster/launch/far_home/parcel.h"
#include "muster/launch/testing/far_homes.h"

namespace muster::output_mirror_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::SizeIs;

class OutputMirrorTest : public FarHomesFixture {
 protected:
  OutputMirrorTest() { EXPECT_TRUE(SendParcel(home_, engine_, {.id = id_, .job = kJob, .tree = tree_}).ok()); }
  absl::StatusOr<FetchedOutput> Fetch(const FarOutputOptions& options = {}) {
    return FetchOutput(home_, id_, engine_, kJob, clock_, options);
  }
  void WriteFar(const std::string& path, const std::string& text) const {
    far_scratch_.Write("experiments/1/output/" + path, text);
  }
  // What the job answers to a list.
  void List(const std::string& path, int64_t bytes) {
    hostile_ = FarMessageText(
        {.head = {{"files", nlohmann::json::array({{{"path", path}, {"bytes", bytes}, {"version", "1"}}})},
                  {"cut", false}}});
  }

  const ExperimentId id_ = Submit();
};

TEST_F(OutputMirrorTest, SmallFilesComeAsTheyAreWritten) {
  WriteFar("eval/metrics.jsonl", "{}\n");
  WriteFar("empty", "");
  EXPECT_EQ(Fetch()->files, 2);
  EXPECT_EQ(Near("output/eval/metrics.jsonl"), "{}\n");
  EXPECT_TRUE(scratch_.Has("experiments/1/output/empty"));
  EXPECT_EQ(Fetch()->files, 0) << "once";
  WriteFar("eval/metrics.jsonl", "{}\n{}\n");
  EXPECT_EQ(Fetch()->files, 1);
  EXPECT_EQ(Near("output/eval/metrics.jsonl"), "{}\n{}\n");
}

TEST_F(OutputMirrorTest, ANameWithControlCharactersStays) {
  WriteFar("\x1b[31mred\n[muster] line", "x");
  WriteFar("plain", "y");
  const auto fetched = Fetch({.at_end = true});
  ASSERT_TRUE(fetched.ok()) << fetched.status();
  EXPECT_THAT(fetched->left, ElementsAre("\\x1b[31mred\\x0a[muster] line: its name has control characters"));
  EXPECT_THAT(PosixFileSystem().ListDirectory(home_.output(id_)).value(), ElementsAre("plain"));
}

TEST_F(OutputMirrorTest, LargerOnesComeAtTheEnd) {
  const std::string model(3 << 20, 'm');
  WriteFar("model", model);
  EXPECT_THAT(Fetch()->left, ElementsAre(HasSubstr("model: 3145728 bytes")));
  EXPECT_FALSE(scratch_.Has("experiments/1/output/model"));
  const auto fetched = Fetch({.at_end = true});
  ASSERT_TRUE(fetched.ok()) << fetched.status();
  EXPECT_EQ(fetched->files, 1);
  EXPECT_THAT(fetched->left, IsEmpty());
  EXPECT_EQ(Near("output/model"), model);
}

TEST_F(OutputMirrorTest, MoreThanTheLimitStaysUnlessItIsWanted) {
  WriteFar("model", std::string(2 << 20, 'm'));
  WriteFar("notes", "small");
  WriteFar("data", "");
  std::filesystem::resize_file(far_scratch_ / "experiments/1/output/data", uint64_t{300} << 20);
  const auto fetched = Fetch({.at_end = true});
  ASSERT_TRUE(fetched.ok()) << fetched.status();
  EXPECT_EQ(fetched->files, 1);
  EXPECT_THAT(fetched->left, SizeIs(2));
  EXPECT_EQ(Near("output/notes"), "small");
  // The data would take long; the model is enough to see it.
  std::filesystem::resize_file(far_scratch_ / "experiments/1/output/data", 1);
  EXPECT_EQ(Fetch({.at_end = true, .everything = true})->files, 2);
}

TEST_F(OutputMirrorTest, AFileGoesOnWhereItWasStopped) {
  const std::string model(3 << 20, 'm');
  WriteFar("model", model);
  const auto answer = played_.ask;
  int pieces = 0;
  played_.ask = [&](const std::string& id, const std::vector<std::string>& arguments, const std::string& input) {
    if (++pieces == 4) return absl::StatusOr<std::string>(absl::UnavailableError("connection refused"));
    return answer(id, arguments, input);
  };
  EXPECT_TRUE(absl::IsUnavailable(Fetch({.at_end = true}).status()));
  const int before = pieces;
  ASSERT_TRUE(Fetch({.at_end = true}).ok());
  EXPECT_LT(pieces - before, 4) << "a list, and what was missing";
  EXPECT_EQ(Near("output/model"), model);
}

TEST_F(OutputMirrorTest, AFileThatIsWrittenMeanwhileIsLeftForTheNextTime) {
  WriteFar("model", std::string(3 << 20, 'm'));
  const auto answer = played_.ask;
  int pieces = 0;
  played_.ask = [&](const std::string& id, const std::vector<std::string>& arguments, const std::string& input) {
    if (++pieces == 3) WriteFar("model", "another");
    return answer(id, arguments, input);
  };
  EXPECT_THAT(Fetch({.at_end = true})->left, ElementsAre(HasSubstr("was written meanwhile")));
  ASSERT_TRUE(Fetch({.at_end = true}).ok());
  EXPECT_EQ(Near("output/model"), "another");
}

TEST_F(OutputMirrorTest, LinksInTheJobAreNotFollowed) {
  far_scratch_.Write("secret/x", "secret");
  WriteFar("a", "a");
  ASSERT_EQ(symlink((far_scratch_ / "secret").c_str(), (far_.output(id_) + "/folder").c_str()), 0);
  ASSERT_EQ(symlink((far_scratch_ / "secret/x").c_str(), (far_.output(id_) + "/file").c_str()), 0);
  EXPECT_EQ(Fetch()->files, 1);
  EXPECT_FALSE(scratch_.Has("experiments/1/output/file"));
  EXPECT_FALSE(scratch_.Has("experiments/1/output/folder"));
}

TEST_F(OutputMirrorTest, HostilePathsAndSizesAreRefused) {
  for (const char* path : {"../records", "/etc/x", "a//b", ""}) {
    List(path, 1);
    EXPECT_TRUE(absl::IsDataLoss(Fetch().status())) << path;
  }
  List("a", -1);
  EXPECT_TRUE(absl::IsDataLoss(Fetch().status()));
  EXPECT_FALSE(scratch_.Has("experiments/1/output"));
}

TEST_F(OutputMirrorTest, NamesThatChangeAllTheTimeFillNoDisk) {
  // As if so many files had come that aren't there any more.
  nlohmann::json files = {{"known", {"0", 1}}};
  for (int i = 0; i < 4; ++i) files[absl::StrCat("gone", i)] = {"1", int64_t{300} << 20};
  const nlohmann::json here = {{"files", files}, {"piece", nullptr}, {"forgotten", 0}};
  scratch_.Write("experiments/1/far_outputs", here.dump());
  WriteFar("known", "news");
  WriteFar("new", "x");
  EXPECT_THAT(Fetch()->left, ElementsAre("new: so many files have come that the job has removed again"));
  EXPECT_EQ(Near("output/known"), "news") << "what the job still has comes";
  EXPECT_FALSE(scratch_.Has("experiments/1/output/new"));
  EXPECT_THAT(Fetch({.at_end = true, .everything = true})->left, IsEmpty());
  EXPECT_EQ(Near("output/new"), "x");
}

TEST_F(OutputMirrorTest, WhatComesCountsOverAllRounds) {
  WriteFar("a", std::string(5000, 'a'));
  ASSERT_EQ(Fetch()->files, 1);
  std::filesystem::remove(far_scratch_ / "experiments/1/output/a");
  WriteFar("b", "b");
  ASSERT_EQ(Fetch()->files, 1);
  const nlohmann::json here = nlohmann::json::parse(Near("far_outputs"));
  EXPECT_EQ(here.at("files").at("a").at(1), 5000);
  EXPECT_EQ(here.at("files").at("b").at(1), 1);
}

TEST_F(OutputMirrorTest, AFileThatIsLargerHereThanTheJobSaysCountsAsItIs) {
  nlohmann::json files = nlohmann::json::object();
  for (int i = 0; i < 257; ++i) {
    WriteFar(absl::StrCat("f", i), "x");
    files[absl::StrCat("f", i)] = {"another", 1 << 20};
  }
  const nlohmann::json here = {{"files", files}, {"piece", nullptr}, {"forgotten", 0}};
  scratch_.Write("experiments/1/far_outputs", here.dump());
  EXPECT_THAT(Fetch()->left, SizeIs(1));
}

TEST_F(OutputMirrorTest, NamesOfLongAgoAreForgottenButCount) {
  nlohmann::json files = nlohmann::json::object();
  for (int i = 0; i < 12000; ++i) files[absl::StrCat(std::string(190, 'n'), i)] = {"1", 10000};
  const nlohmann::json here = {{"files", files}, {"piece", nullptr}, {"forgotten", 7}};
  scratch_.Write("experiments/1/far_outputs", here.dump());
  WriteFar("new", "x");
  ASSERT_EQ(Fetch()->files, 1);
  const nlohmann::json left = nlohmann::json::parse(Near("far_outputs"));
  EXPECT_THAT(left.at("files"), SizeIs(1));
  EXPECT_EQ(left.at("forgotten"), 12000 * 10000 + 7);
}

TEST_F(OutputMirrorTest, NothingIsWrittenThroughALinkHere) {
  scratch_.Write("mine/a", "mine");
  scratch_.Write("experiments/1/output/x", "");
  ASSERT_EQ(symlink((scratch_ / "mine").c_str(), (home_.output(id_) + "/folder").c_str()), 0);
  WriteFar("folder/a", "theirs");
  EXPECT_THAT(Fetch()->left, SizeIs(1));
  EXPECT_EQ(scratch_.Read("mine/a"), "mine");
}

}  // namespace
}  // namespace muster::output_mirror_test
