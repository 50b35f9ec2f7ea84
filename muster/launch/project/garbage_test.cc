#include "muster/launch/project/garbage.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/project/build.h"
#include "muster/launch/project/folder_lock.h"
#include "muster/launch/project/project_tree.h"
#include "muster/launch/registry/run_lock.h"
#include "muster/launch/spec/experiment_file.h"

namespace muster::garbage_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::UnorderedElementsAre;

constexpr char kPlainFile[] = "project: toaster\ntrain:\n  run: python main.py\n";
constexpr char kBuildFile[] =
    "project: toaster\ntrain:\n  framework: tensorflow\n  tensorflow: {version: 2.15.0}\n  install: make\n"
    "  run: python main.py\n";

class GarbageTest : public ::testing::Test {
 protected:
  GarbageTest() { registry_ = Registry::Open(home_, RealClock()).value(); }

  // Is three hours old, like everything that these functions make.
  void AddTree(const std::string& name) {
    scratch_.Write(absl::StrCat("code/", name, "/main.py"), "12345");
    scratch_.MakeOld("code/" + name, absl::Hours(3));
  }
  void AddBuild(const std::string& name, bool done) {
    scratch_.Write(name + "/.muster-lock", "");
    scratch_.Write(name + "/code/made", "123");
    if (done) scratch_.Write(absl::StrCat(name, "/", kBuildDoneName), "");
    scratch_.MakeOld(name, absl::Hours(3));
  }
  int64_t AddExperiment(const std::string& tree, const std::string& file = kPlainFile, int runs = 0) {
    NewExperiment experiment{.project = "toaster",
                             .folder = "/project",
                             .file_name = "muster.yml",
                             .file_text = file,
                             .tree = tree,
                             .runs = std::vector<ParameterValues>(runs > 0 ? runs : 1),
                             .grid = runs > 0};
    const auto number = registry_->Create(experiment);
    EXPECT_TRUE(number.ok()) << number.status();
    scratch_.Write(absl::StrCat("experiments/", number.value_or(0), "/output/model"), "1234567");
    return number.value_or(0);
  }
  // Ends it at the time of the registry's clock.
  void End(const ExperimentId& id, absl::Duration ago = absl::ZeroDuration()) {
    const SimulatedClock then(absl::Now() - ago);
    const auto registry = Registry::Open(home_, then).value();
    auto run = registry->Run(id).value();
    run.state = RunState::kKilled;
    const absl::Status set = registry->SetRun(run);
    EXPECT_TRUE(set.ok()) << set;
  }
  GarbageReport Collect(const GarbageOptions& options = {}) {
    auto report = CollectGarbage(home_, *registry_, RealClock(), options).value();
    EXPECT_THAT(report.problems, IsEmpty());
    return report;
  }
  static std::vector<std::string> Paths(const GarbageReport& report) {
    std::vector<std::string> paths;
    for (const Garbage& garbage : report.removed) paths.push_back(garbage.path);
    return paths;
  }
  std::vector<std::string> Removed(const GarbageOptions& options = {}) { return Paths(Collect(options)); }

  const ScratchFolder scratch_;
  const Home home_{scratch_.path()};
  std::unique_ptr<Registry> registry_;
};

TEST_F(GarbageTest, ThereIsNothingInANewHome) {
  const GarbageReport report = Collect({.experiments_older_than = absl::ZeroDuration()});
  EXPECT_THAT(report.removed, IsEmpty());
  EXPECT_THAT(report.notes, IsEmpty());
  EXPECT_FALSE(scratch_.Has("code"));
}

TEST_F(GarbageTest, CodeThatNoExperimentUsesGoes) {
  for (const char* name : {"open", "ended", "unused", "young"}) AddTree(name);
  scratch_.MakeOld("code/young", absl::Minutes(59));
  AddExperiment("open");
  End({.number = AddExperiment("ended")}, absl::Hours(1000));
  scratch_.Write("code/a_file", "");
  scratch_.MakeOld("code/a_file", absl::Hours(3));
  const GarbageReport report = Collect();
  EXPECT_THAT(Paths(report), ElementsAre("code/unused"));
  EXPECT_EQ(report.removed[0].kind, GarbageKind::kCode);
  EXPECT_EQ(report.removed[0].bytes, 5);
  EXPECT_EQ(report.bytes, 5);
  EXPECT_FALSE(scratch_.Has("code/unused"));
  EXPECT_TRUE(scratch_.Has("code/open/main.py"));
  EXPECT_TRUE(scratch_.Has("code/ended/main.py"));
  EXPECT_TRUE(scratch_.Has("code/young/main.py"));
  EXPECT_THAT(Removed(), IsEmpty());
}

TEST_F(GarbageTest, OlderThanKeepsWhatWasUsedSince) {
  AddTree("days");
  AddTree("hours");
  scratch_.MakeOld("code/days", absl::Hours(24 * 8));
  EXPECT_THAT(Removed({.older_than = absl::Hours(24 * 7)}), ElementsAre("code/days"));
  scratch_.MakeOld("code/hours", absl::Minutes(30));
  // Stays even when asked for: an experiment that is just being started may use it.
  EXPECT_THAT(Removed({.older_than = absl::ZeroDuration()}), IsEmpty());
}

TEST_F(GarbageTest, AGridsRunsKeepTheirCode) {
  AddTree("grid");
  End({.number = AddExperiment("grid", kPlainFile, 3)});
  EXPECT_THAT(Removed(), IsEmpty());
}

// One of the grid's runs was restarted with other code, so the grid's file is no longer that of the others.
TEST_F(GarbageTest, BuildsStayWhileRunsOfSeveralCodesGoOn) {
  AddTree("first");
  AddTree("second");
  const int64_t number = AddExperiment("first", kBuildFile, 2);
  AddBuild("builds/0123", true);
  End({.number = number, .run = 1});
  const NewExperiment again{.project = "toaster",
                            .folder = "/project",
                            .file_name = "muster.yml",
                            .file_text = kPlainFile,
                            .tree = "second",
                            .runs = {{}},
                            .grid = false};
  const absl::Status restarted = registry_->Restart({.number = number, .run = 1}, again);
  ASSERT_TRUE(restarted.ok()) << restarted;
  EXPECT_THAT(Removed(), IsEmpty());
  for (const int run : {0, 1, 2}) End({.number = number, .run = run});
  EXPECT_THAT(Removed(), ElementsAre("builds/0123"));
}

TEST_F(GarbageTest, BuildsAndEnvironmentsThatNoExperimentUsesGo) {
  AddTree("tree");
  AddExperiment("tree", kBuildFile);
  const auto file = ParseExperimentFile(kBuildFile, "muster.yml").value();
  const auto used = BuildFoldersOf(file, "tree", {}, home_).value();
  ASSERT_EQ(used.size(), 2U);
  for (const std::string& folder : used) AddBuild(std::filesystem::relative(folder, scratch_.path()), true);
  AddBuild("builds/0123", true);
  AddBuild("environments/tensorflow-1.2.1", true);
  AddBuild("builds/young", true);
  scratch_.MakeOld("builds/young", absl::Minutes(50));
  const GarbageReport report = Collect();
  EXPECT_THAT(Paths(report), UnorderedElementsAre("builds/0123", "environments/tensorflow-1.2.1"));
  EXPECT_EQ(report.bytes, 6);
  for (const std::string& folder : used) EXPECT_TRUE(std::filesystem::exists(folder + "/code/made"));
}

TEST_F(GarbageTest, UnfinishedBuildsGoUnlessSomebodyIsAtWork) {
  AddTree("tree");
  AddExperiment("tree", kBuildFile);
  AddBuild("environments/tensorflow-2.15.0", false);
  AddBuild("builds/at_work", false);
  AddBuild("builds/young", false);
  scratch_.MakeOld("builds/young", absl::Minutes(50));
  const auto right = FolderLock::Take(scratch_ / "builds/at_work", absl::ZeroDuration()).value();
  EXPECT_THAT(Removed(), ElementsAre("environments/tensorflow-2.15.0"));
  EXPECT_TRUE(scratch_.Has("builds/at_work/code/made"));
  EXPECT_TRUE(scratch_.Has("builds/young/code/made"));
}

TEST_F(GarbageTest, WhatAnUnreadableOpenExperimentUsesStays) {
  AddTree("tree");
  const int64_t number = AddExperiment("tree", "]");
  AddBuild("builds/0123", true);
  const GarbageReport report = Collect();
  EXPECT_THAT(report.removed, IsEmpty());
  EXPECT_THAT(report.notes, ElementsAre(HasSubstr(absl::StrCat("experiment ", number))));
  End({.number = number});
  EXPECT_THAT(Removed(), ElementsAre("builds/0123"));
}

TEST_F(GarbageTest, LeftoversOfKilledProcessesGo) {
  for (const char* folder : {"code", "builds", "experiments"}) {
    scratch_.Write(absl::StrCat(folder, "/.tmp-left/tree/file"), "x");
    scratch_.MakeOld(absl::StrCat(folder, "/.tmp-left"), absl::Hours(3));
  }
  scratch_.Write("code/.tmp-young/file", "x");
  scratch_.Write("code/.other/file", "x");
  scratch_.MakeOld("code/.other", absl::Hours(3));
  scratch_.Write("code/.tmp-held/.muster-lock", "");
  scratch_.MakeOld("code/.tmp-held", absl::Hours(3));
  const auto held = FolderLock::Take(scratch_ / "code/.tmp-held", absl::ZeroDuration()).value();
  EXPECT_THAT(Removed(), UnorderedElementsAre("code/.tmp-left", "builds/.tmp-left", "experiments/.tmp-left"));
  EXPECT_TRUE(scratch_.Has("code/.tmp-young"));
  EXPECT_TRUE(scratch_.Has("code/.tmp-held"));
  EXPECT_TRUE(scratch_.Has("code/.other"));
}

TEST_F(GarbageTest, ExperimentsStayUnlessAskedFor) {
  AddTree("tree");
  const int64_t number = AddExperiment("tree");
  End({.number = number}, absl::Hours(24 * 1000));
  EXPECT_THAT(Removed(), IsEmpty());
  EXPECT_TRUE(registry_->Run({.number = number}).ok());
  EXPECT_TRUE(scratch_.Has(absl::StrCat("experiments/", number, "/output/model")));
}

TEST_F(GarbageTest, OldExperimentsGoWithTheirFoldersAndWhatOnlyTheyUsed) {
  for (const char* tree : {"old", "recent", "open"}) AddTree(tree);
  const int64_t old = AddExperiment("old");
  const int64_t recent = AddExperiment("recent");
  const int64_t open = AddExperiment("open");
  End({.number = old}, absl::Hours(24 * 31));
  End({.number = recent}, absl::Hours(24 * 29));
  const GarbageReport report = Collect({.experiments_older_than = absl::Hours(24 * 30)});
  EXPECT_THAT(Paths(report), ElementsAre(absl::StrCat("experiments/", old), "code/old"));
  EXPECT_GT(report.bytes, 7 + 5) << "and its state";
  EXPECT_EQ(registry_->Run({.number = old}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(scratch_.Has(absl::StrCat("experiments/", old)));
  EXPECT_TRUE(registry_->Run({.number = recent}).ok());
  EXPECT_TRUE(scratch_.Has(absl::StrCat("experiments/", recent, "/output/model")));
  // The open experiment stays in any case.
  EXPECT_THAT(Removed({.experiments_older_than = absl::ZeroDuration()}),
              ElementsAre(absl::StrCat("experiments/", recent), "code/recent"));
  EXPECT_TRUE(scratch_.Has(absl::StrCat("experiments/", open, "/output/model")));
  EXPECT_TRUE(scratch_.Has("code/open"));
}

TEST_F(GarbageTest, OutputsElsewhereStay) {
  const ScratchFolder elsewhere;
  elsewhere.Write("model", "x");
  const int64_t number = AddExperiment("tree");
  auto run = registry_->Run({.number = number}).value();
  run.output_dir = elsewhere.path();
  ASSERT_TRUE(registry_->SetRun(run).ok());
  // Also tests links inside a removed folder.
  std::filesystem::create_symlink(elsewhere.path(), scratch_ / absl::StrCat("experiments/", number, "/link"));
  End({.number = number}, absl::Hours(2));
  EXPECT_THAT(Removed({.experiments_older_than = absl::ZeroDuration()}),
              ElementsAre(absl::StrCat("experiments/", number)));
  EXPECT_TRUE(elsewhere.Has("model"));
}

TEST_F(GarbageTest, SoManyAreKept) {
  std::vector<int64_t> numbers;
  for (int i = 0; i < 4; ++i) numbers.push_back(AddExperiment("tree"));
  // The order in which they ended is what counts.
  End({.number = numbers[0]}, absl::Hours(1));
  End({.number = numbers[1]}, absl::Hours(4));
  End({.number = numbers[2]}, absl::Hours(3));
  End({.number = numbers[3]}, absl::Hours(2));
  EXPECT_THAT(Removed({.experiments_older_than = absl::ZeroDuration(), .keep = 2}),
              ElementsAre(absl::StrCat("experiments/", numbers[1]), absl::StrCat("experiments/", numbers[2])));
  EXPECT_THAT(Removed({.experiments_older_than = absl::ZeroDuration(), .keep = 100}), IsEmpty());
}

TEST_F(GarbageTest, AnEndedExperimentInUseStays) {
  const int64_t number = AddExperiment("tree");
  End({.number = number}, absl::Hours(2));
  {
    const auto lock = RunLock::Take(home_.lock({.number = number})).value();
    const GarbageReport report = Collect({.experiments_older_than = absl::ZeroDuration()});
    EXPECT_THAT(report.removed, IsEmpty());
    EXPECT_THAT(report.notes, ElementsAre(HasSubstr("in use")));
  }
  EXPECT_THAT(Removed({.experiments_older_than = absl::ZeroDuration()}),
              ElementsAre(absl::StrCat("experiments/", number)));
}

// The grid's own supervisor was killed, those of its runs go on.
TEST_F(GarbageTest, AGridOfWhichARunGoesOnStays) {
  const int64_t number = AddExperiment("tree", kPlainFile, 2);
  End({.number = number}, absl::Hours(2));
  End({.number = number, .run = 1}, absl::Hours(2));
  EXPECT_THAT(Removed({.experiments_older_than = absl::ZeroDuration()}), IsEmpty());
  End({.number = number, .run = 2}, absl::Hours(2));
  std::filesystem::create_directories(home_.folder({.number = number, .run = 2}));
  {
    const auto lock = RunLock::Take(home_.lock({.number = number, .run = 2})).value();
    EXPECT_THAT(Removed({.experiments_older_than = absl::ZeroDuration()}), IsEmpty());
  }
  EXPECT_THAT(Removed({.experiments_older_than = absl::ZeroDuration()}),
              ElementsAre(absl::StrCat("experiments/", number)));
}

TEST_F(GarbageTest, AnExperimentWithoutAFolderIsForgotten) {
  const int64_t number = AddExperiment("tree");
  End({.number = number}, absl::Hours(2));
  std::filesystem::remove_all(home_.folder({.number = number}));
  Collect({.experiments_older_than = absl::ZeroDuration()});
  EXPECT_EQ(registry_->Run({.number = number}).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(GarbageTest, FoldersTheRegistryDoesNotKnowAreOnlyNamed) {
  scratch_.Write("experiments/77/output/model", "x");
  EXPECT_THAT(Collect().notes, IsEmpty());  // a temporary folder is being made
  scratch_.MakeOld("experiments/77", absl::Hours(3));
  const GarbageReport report = Collect({.experiments_older_than = absl::ZeroDuration()});
  EXPECT_THAT(report.removed, IsEmpty());
  EXPECT_THAT(report.notes, ElementsAre(HasSubstr("experiments/77")));
  EXPECT_TRUE(scratch_.Has("experiments/77/output/model"));
}

TEST_F(GarbageTest, ADryRunSaysTheSameAndRemovesNothing) {
  AddTree("old");
  AddTree("unused");
  AddBuild("builds/0123", true);
  scratch_.Write("builds/.tmp-left/file", "x");
  scratch_.MakeOld("builds/.tmp-left", absl::Hours(3));
  const int64_t number = AddExperiment("old");
  End({.number = number}, absl::Hours(2));
  GarbageOptions options{.experiments_older_than = absl::ZeroDuration(), .dry_run = true};
  const GarbageReport dry = Collect(options);
  EXPECT_TRUE(registry_->Run({.number = number}).ok());
  EXPECT_TRUE(scratch_.Has("code/old/main.py"));
  EXPECT_TRUE(scratch_.Has("builds/.tmp-left"));
  EXPECT_TRUE(scratch_.Has(absl::StrCat("experiments/", number, "/output/model")));
  options.dry_run = false;
  const GarbageReport real = Collect(options);
  EXPECT_EQ(Paths(dry), Paths(real));
  EXPECT_EQ(dry.removed.size(), 5U);
  EXPECT_EQ(dry.bytes, real.bytes);
}

// The hour for which a tree is safe begins when it is found.
TEST_F(GarbageTest, ATreeThatIsFoundMeanwhileStays) {
  const ScratchFolder project;
  project.Write("main.py", "x");
  const auto files = ListProject(project.path()).value();
  const auto store = [&] { return StoreTree(project.path(), files, home_.trees(), nullptr).value_or("failed"); };
  const std::string tree = "code/" + store();
  for (int i = 0; i < 50; ++i) {
    scratch_.MakeOld(tree, absl::Hours(3));
    std::thread train([&] { EXPECT_EQ("code/" + store(), tree); });
    Collect();
    train.join();
    ASSERT_TRUE(scratch_.Has(tree + "/main.py"));
  }
}

}  // namespace
}  // namespace muster::garbage_test
