#include "muster/launch/project/project_tree.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "muster/base/testing/full_disk.h"
#include "muster/base/testing/scratch_folder.h"

namespace muster::project_tree_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;

std::vector<std::string> Paths(const ProjectFiles& files) {
  std::vector<std::string> paths;
  for (const ProjectFile& file : files.files) paths.push_back(file.path);
  return paths;
}

class ProjectTreeTest : public ::testing::Test {
 protected:
  ProjectFiles List() { return ListProject(project_.path()).value(); }
  absl::StatusOr<std::string> Store(const ProjectFiles& files) {
    return StoreTree(project_.path(), files, trees_, nullptr);
  }
  std::string Hash() { return Store(List()).value(); }
  // Returns the names in the folder of trees except its lock.
  std::vector<std::string> Trees() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(trees_))
      if (entry.path().filename() != ".muster-lock") names.push_back(entry.path().filename());
    return names;
  }

  const ScratchFolder project_;
  const ScratchFolder home_;
  const std::string trees_ = home_ / "code";
};

TEST_F(ProjectTreeTest, ListsAllButWhatIsNamed) {
  project_.Write("b.py", "12345");
  project_.Write("a/deep/c.py", "1");
  project_.Write("a.txt", "");
  project_.Write(".git/HEAD", "x");
  project_.Write("module/.git", "gitdir: elsewhere");
  project_.Write("run.log", "x");
  project_.Write(".musterignore", "*.log\n/data/*\n");
  project_.Write(".risemlignore", "*.py\n");
  project_.Write("data/large", "x");
  std::filesystem::create_directory(project_ / "empty");
  ASSERT_EQ(mkfifo((project_ / "pipe").c_str(), 0600), 0);
  ASSERT_EQ(chmod((project_ / "b.py").c_str(), 0755), 0);
  const ProjectFiles files = List();
  EXPECT_THAT(Paths(files),
              ElementsAre(".musterignore", ".risemlignore", "a.txt", "a/deep/c.py", "b.py", "data", "empty", "module"));
  EXPECT_EQ(files.bytes, 14 + 5 + 1 + 5);
  EXPECT_TRUE(files.files[4].executable);
  EXPECT_FALSE(files.files[3].executable);
  EXPECT_TRUE(files.files[5].empty_folder);
  EXPECT_EQ(SyncTitle(files), "Syncing project (25 bytes, 5 files)");
}

TEST_F(ProjectTreeTest, RiseMlsPatternsCountWhereThereAreNoOthers) {
  project_.Write(".risemlignore", "*.log\n");
  project_.Write("a.log", "x");
  EXPECT_THAT(Paths(List()), ElementsAre(".risemlignore"));
}

TEST_F(ProjectTreeTest, TitleCountsInPowersOfTen) {
  ProjectFiles files;
  files.files.resize(6);
  files.bytes = 5'700'000;
  EXPECT_EQ(SyncTitle(files), "Syncing project (5.7 MB, 6 files)");
  files.files.resize(1);
  files.bytes = 1000;
  EXPECT_EQ(SyncTitle(files), "Syncing project (1.0 KB, 1 file)");
}

TEST_F(ProjectTreeTest, MusterHomeIsNoPartOfTheProject) {
  project_.Write("a.py", "x");
  project_.Write("home/registry.db", "x");
  std::filesystem::create_symlink(project_ / "home", home_ / "way");
  // The folder is left out by any of its paths.
  const auto files = ListProject(project_.path(), {home_ / "way", home_ / "none"}).value();
  EXPECT_THAT(Paths(files), ElementsAre("a.py"));
  const auto itself = ListProject(project_.path(), {project_.path()});
  EXPECT_EQ(itself.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(itself.status().message()), HasSubstr("MUSTER_HOME"));
}

TEST_F(ProjectTreeTest, NamesWhatCannotBeRead) {
  const auto none = ListProject(project_ / "none");
  EXPECT_EQ(none.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(none.status().message()), HasSubstr(project_ / "none"));
  project_.Write("file", "");
  EXPECT_EQ(ListProject(project_ / "file").status().code(), absl::StatusCode::kInvalidArgument);
}

// root can read everything, so another user lists there.
class AsSomebody {
 public:
  AsSomebody() {
    if (was_ == 0) {
      EXPECT_EQ(seteuid(65534), 0);
    }
  }
  ~AsSomebody() {
    if (was_ == 0) {
      EXPECT_EQ(seteuid(0), 0);
    }
  }
  AsSomebody(const AsSomebody&) = delete;
  AsSomebody& operator=(const AsSomebody&) = delete;

 private:
  const uid_t was_ = geteuid();
};

TEST_F(ProjectTreeTest, NamesWhatMayNotBeRead) {
  ASSERT_EQ(chmod(project_.path().c_str(), 0755), 0);
  project_.Write("secret", "");
  ASSERT_EQ(chmod((project_ / "secret").c_str(), 0), 0);
  const auto list = [&] {
    const AsSomebody somebody;
    return ListProject(project_.path()).status();
  };
  EXPECT_EQ(list().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(list().message()), HasSubstr(project_ / "secret"));
  project_.Write(".musterignore", "secret\n");
  EXPECT_TRUE(list().ok()) << list();
  project_.Write("folder/file", "");
  ASSERT_EQ(chmod((project_ / "folder").c_str(), 0), 0);
  EXPECT_THAT(std::string(list().message()), HasSubstr(project_ / "folder"));
  project_.Write(".musterignore", "secret\nfolder/\n");
  EXPECT_TRUE(list().ok()) << list();
  ASSERT_EQ(chmod((project_ / "folder").c_str(), 0755), 0);
}

TEST_F(ProjectTreeTest, LinksStayLinksAndLeadToTheSame) {
  project_.Write("data/a", "x");
  std::filesystem::create_symlink("data", project_ / "inside");
  std::filesystem::create_symlink("../data/a", project_ / "data/also_inside");
  std::filesystem::create_symlink("/dev/null", project_ / "absolute");
  std::filesystem::create_symlink("../elsewhere", project_ / "outside");
  std::filesystem::create_symlink("nothing", project_ / "dangling");
  std::filesystem::create_symlink("inside", project_ / "inside/loop");
  const std::string tree = trees_ + "/" + Hash();
  const std::string copy = home_ / "experiments/1/work";
  ASSERT_TRUE(CopyTree(tree, copy).ok());
  const std::string real = std::filesystem::canonical(project_.path());
  for (const std::string& folder : {tree, copy}) {
    EXPECT_EQ(std::filesystem::read_symlink(folder + "/inside"), "data");
    EXPECT_EQ(std::filesystem::read_symlink(folder + "/data/also_inside"), "../data/a");
    EXPECT_EQ(std::filesystem::read_symlink(folder + "/absolute"), "/dev/null");
    EXPECT_EQ(std::filesystem::read_symlink(folder + "/outside"), real + "/../elsewhere");
    EXPECT_EQ(std::filesystem::read_symlink(folder + "/dangling"), "nothing");
    EXPECT_EQ(std::filesystem::read_symlink(folder + "/data/loop"), "inside");
  }
}

// Computed with Python's hashlib from docs/experiments/code.md.
TEST_F(ProjectTreeTest, HashIsTheDocumentedOne) {
  project_.Write("a.txt", "hello\n");
  project_.Write("bin/run.sh", "#!/bin/sh\n");
  ASSERT_EQ(chmod((project_ / "bin/run.sh").c_str(), 0755), 0);
  std::filesystem::create_symlink("a.txt", project_ / "link");
  std::filesystem::create_directory(project_ / "empty");
  EXPECT_EQ(Hash(), "7f40956ae95f5a267c6c0518520e09716e827d434f10335031f7bab111092acc");
}

TEST_F(ProjectTreeTest, HashChangesWithEveryThingThatCountsAndNoOther) {
  project_.Write("a", "text");
  project_.Write("b/c", "text");
  std::filesystem::create_symlink("a", project_ / "link");
  const std::string first = Hash();
  const auto changes = [&](const std::function<void()>& change, const std::function<void()>& undo) {
    change();
    const bool changed = Hash() != first;
    undo();
    EXPECT_EQ(Hash(), first);
    return changed;
  };
  const auto mode = [&](int rights) { EXPECT_EQ(chmod((project_ / "a").c_str(), rights), 0); };
  const auto link = [&](const std::string& to) {
    std::filesystem::remove(project_ / "link");
    std::filesystem::create_symlink(to, project_ / "link");
  };
  const auto name = [&](const std::string& from, const std::string& to) {
    std::filesystem::rename(project_ / from, project_ / to);
  };
  EXPECT_TRUE(changes([&] { project_.Write("a", "Text"); }, [&] { project_.Write("a", "text"); }));
  EXPECT_TRUE(changes([&] { project_.Write("a", ""); }, [&] { project_.Write("a", "text"); }));
  EXPECT_TRUE(changes([&] { mode(0755); }, [&] { mode(0644); }));
  EXPECT_TRUE(changes([&] { link("b"); }, [&] { link("a"); }));
  EXPECT_TRUE(changes([&] { name("a", "A"); }, [&] { name("A", "a"); }));
  EXPECT_TRUE(changes(
      [&] {
        name("b/c", "c");
        std::filesystem::remove(project_ / "b");
      },
      [&] {
        std::filesystem::create_directory(project_ / "b");
        name("c", "b/c");
      }));
  EXPECT_TRUE(changes([&] { project_.Write("d", ""); }, [&] { std::filesystem::remove(project_ / "d"); }));
  EXPECT_TRUE(changes([&] { std::filesystem::create_directory(project_ / "d"); },
                      [&] { std::filesystem::remove(project_ / "d"); }));
  EXPECT_FALSE(changes([&] { project_.MakeOld("a", absl::Hours(1000)); }, [] {}));
  EXPECT_FALSE(changes([&] { mode(0664); }, [&] { mode(0644); }));
}

// The bytes of names and contents in a row are the same in both trees.
TEST_F(ProjectTreeTest, NamesAndContentsCannotBeTakenForOneAnother) {
  project_.Write("a", "bc");
  const std::string first = Hash();
  std::filesystem::remove(project_ / "a");
  project_.Write("ab", "c");
  EXPECT_NE(Hash(), first);
}

TEST_F(ProjectTreeTest, TreeAndCopyHoldWhatTheProjectHeld) {
  const std::string binary("\0\xFF\n", 3);
  project_.Write("with blank\nand line", binary);
  project_.Write("deep/er/run", std::string(3'000'000, 'r'));
  ASSERT_EQ(chmod((project_ / "deep/er/run").c_str(), 0700), 0);
  std::filesystem::create_directory(project_ / "empty");
  std::vector<int64_t> told;
  const auto hash = StoreTree(project_.path(), List(), trees_, [&](int64_t bytes) { told.push_back(bytes); });
  ASSERT_TRUE(hash.ok()) << hash.status();
  project_.Write("with blank\nand line", "edited");
  ASSERT_TRUE(CopyTree(trees_ + "/" + *hash, home_ / "work").ok());
  for (const std::string& folder : {"code/" + *hash, std::string("work")}) {
    EXPECT_EQ(home_.Read(folder + "/with blank\nand line"), binary);
    EXPECT_EQ(home_.Read(folder + "/deep/er/run"), std::string(3'000'000, 'r'));
    EXPECT_EQ(access((home_ / (folder + "/deep/er/run")).c_str(), X_OK), 0);
    EXPECT_TRUE(std::filesystem::is_empty(home_ / (folder + "/empty")));
    struct stat info;
    ASSERT_EQ(stat((home_ / (folder + "/with blank\nand line")).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0100, 0U);
    EXPECT_EQ(info.st_nlink, 1U);
  }
  EXPECT_THAT(told, testing::WhenSorted(testing::ContainerEq(told)));
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back(), 3'000'003);
  EXPECT_EQ(CopyTree(trees_ + "/" + *hash, home_ / "work").code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(home_.Read("work/with blank\nand line"), binary);
}

TEST_F(ProjectTreeTest, ACopyIsItsOwn) {
  project_.Write("a", "as it was");
  const std::string tree = "code/" + Hash();
  ASSERT_TRUE(CopyTree(home_ / tree, home_ / "work").ok());
  home_.Write("work/a", "written by the program");
  EXPECT_EQ(home_.Read(tree + "/a"), "as it was");
}

TEST_F(ProjectTreeTest, ATreeThatIsGoneIsNotFound) {
  EXPECT_EQ(CopyTree(home_ / "none", home_ / "work").code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(home_.Has("work"));
  EXPECT_EQ(KeepTree(trees_, "none").code(), absl::StatusCode::kNotFound);
}

TEST_F(ProjectTreeTest, AnEmptyProjectIsATree) {
  EXPECT_EQ(SyncTitle(List()), "Syncing project (0 bytes, 0 files)");
  ASSERT_TRUE(CopyTree(trees_ + "/" + Hash(), home_ / "work").ok());
  EXPECT_TRUE(std::filesystem::is_empty(home_ / "work"));
}

TEST_F(ProjectTreeTest, WhatIsThereIsLeftAndMadeYoung) {
  project_.Write("a", "x");
  const std::string tree = "code/" + Hash();
  struct stat before;
  ASSERT_EQ(stat((home_ / (tree + "/a")).c_str(), &before), 0);
  for (const bool keep : {false, true}) {
    home_.MakeOld(tree, absl::Hours(48));
    if (keep) {
      EXPECT_TRUE(KeepTree(trees_, tree.substr(5)).ok());
    } else {
      Hash();
    }
    struct stat info;
    ASSERT_EQ(stat((home_ / tree).c_str(), &info), 0);
    EXPECT_GT(absl::TimeFromTimespec(info.st_mtim), absl::Now() - absl::Hours(1));
  }
  struct stat after;
  ASSERT_EQ(stat((home_ / (tree + "/a")).c_str(), &after), 0);
  EXPECT_EQ(after.st_ino, before.st_ino);
}

TEST_F(ProjectTreeTest, ADamagedTreeIsMadeAnew) {
  project_.Write("a", "text");
  project_.Write("b", "text");
  const std::string tree = "code/" + Hash();
  home_.Write(tree + "/a", "");
  EXPECT_EQ("code/" + Hash(), tree);
  EXPECT_EQ(home_.Read(tree + "/a"), "text");
  std::filesystem::remove(home_ / (tree + "/b"));
  EXPECT_EQ("code/" + Hash(), tree);
  EXPECT_EQ(home_.Read(tree + "/b"), "text");
  EXPECT_THAT(Trees(), ElementsAre(tree.substr(5)));
}

TEST_F(ProjectTreeTest, AVanishedFileIsNamedAndNothingIsLeft) {
  project_.Write("a", "x");
  project_.Write("b", "x");
  const ProjectFiles files = List();
  std::filesystem::remove(project_ / "b");
  const auto vanished = Store(files);
  EXPECT_EQ(vanished.status().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(vanished.status().message()), HasSubstr(project_ / "b"));
  // Must not wait for a writer to open the pipe.
  ASSERT_EQ(mkfifo((project_ / "b").c_str(), 0600), 0);
  EXPECT_EQ(Store(files).status().code(), absl::StatusCode::kAborted);
  std::filesystem::remove(project_ / "b");
  std::filesystem::create_symlink("a", project_ / "b");
  EXPECT_EQ(Store(files).status().code(), absl::StatusCode::kAborted);
  std::filesystem::create_directory(trees_);
  EXPECT_THAT(Trees(), IsEmpty());
}

// The file is edited between the two reads: the progress callback runs after the first file was hashed.
TEST_F(ProjectTreeTest, WhatIsEditedMeanwhileIsStoredByWhatWasCopied) {
  project_.Write("a", std::string(4 << 20, 'a'));
  project_.Write("b", "before");
  bool edited = false;
  const auto edit = [&](int64_t) {
    if (!std::exchange(edited, true)) project_.Write("a", "after");
  };
  const auto hash = StoreTree(project_.path(), List(), trees_, edit).value();
  ASSERT_TRUE(edited);
  EXPECT_EQ(home_.Read("code/" + hash + "/a"), "after");
  EXPECT_EQ(Hash(), hash);
  EXPECT_THAT(Trees(), ElementsAre(hash));
}

TEST_F(ProjectTreeTest, VanishedBetweenHashingAndCopyingLeavesNothing) {
  project_.Write("a", std::string(4 << 20, 'a'));
  project_.Write("b", "before");
  const auto remove = [&](int64_t) { std::filesystem::remove(project_ / "a"); };
  const auto vanished = StoreTree(project_.path(), List(), trees_, remove);
  EXPECT_EQ(vanished.status().code(), absl::StatusCode::kAborted) << vanished.status();
  EXPECT_THAT(Trees(), IsEmpty());
}

TEST_F(ProjectTreeTest, AFullDiskNamesTheFolderAndLeavesNothing) {
  project_.Write("a/large", std::string(1 << 20, 'a'));
  const ProjectFiles files = List();
  constexpr rlim_t kRoom = 4096;
  std::optional<FullDisk> disk(std::in_place, kRoom);
  const auto full = Store(files);
  disk.reset();
  EXPECT_FALSE(full.ok());
  EXPECT_THAT(std::string(full.status().message()), HasSubstr(trees_));
  EXPECT_THAT(std::string(full.status().message()), HasSubstr("muster gc"));
  EXPECT_THAT(Trees(), IsEmpty());

  const std::string tree = trees_ + "/" + Hash();
  disk.emplace(kRoom);
  const absl::Status copied = CopyTree(tree, home_ / "work");
  disk.reset();
  EXPECT_THAT(std::string(copied.message()), HasSubstr(home_ / "work"));
  EXPECT_FALSE(home_.Has("work"));
}

TEST_F(ProjectTreeTest, AFolderThatCannotBeWrittenToIsNamed) {
  home_.Write("code", "a file");
  const auto stored = Store(List());
  EXPECT_THAT(std::string(stored.status().message()), HasSubstr(trees_));
}

TEST_F(ProjectTreeTest, ThreadsAndProcessesThatStoreTheSameGetTheSame) {
  for (int i = 0; i < 50; ++i) project_.Write("file" + std::to_string(i), std::string(i * 100, 'x'));
  const ProjectFiles files = List();
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(fork());
    if (children.back() == 0) _exit(Store(files).ok() ? 0 : 1);
  }
  std::vector<std::thread> threads;
  std::vector<std::string> hashes(4);
  for (std::string& hash : hashes) threads.emplace_back([&] { hash = Store(files).value_or("failed"); });
  for (std::thread& thread : threads) thread.join();
  for (const pid_t child : children) {
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  const std::string hash = Hash();
  EXPECT_THAT(hashes, testing::Each(hash));
  EXPECT_THAT(Trees(), ElementsAre(hash));
}

TEST_F(ProjectTreeTest, AnyNumberOfFiles) {
  constexpr int kFiles = 1234;
  for (int i = 0; i < kFiles; ++i) project_.Write("folder" + std::to_string(i % 7) + "/" + std::to_string(i), "1");
  const ProjectFiles files = List();
  EXPECT_EQ(SyncTitle(files), "Syncing project (1.2 KB, 1234 files)");
  const std::string tree = trees_ + "/" + Hash();
  ASSERT_TRUE(CopyTree(tree, home_ / "work").ok());
  const auto copied = ListProject(home_ / "work").value();
  EXPECT_EQ(Paths(copied), Paths(files));
}

}  // namespace
}  // namespace muster::project_tree_test
