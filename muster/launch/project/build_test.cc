#include "muster/launch/project/build.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/testing/scratch_folder.h"

namespace muster::build_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::Not;

constexpr char kTree[] = "0123";

// Makes virtual environments whose python logs what it installs in the environment's pip.log, and fails if a file
// `refuses` exists beside this python3. Its -c is the real one's.
constexpr char kPython3[] = R"(#!/bin/sh
[ "$1 $2" = "-m venv" ] || exit 99
mkdir -p "$3/bin" "$3/lib"
cat > "$3/bin/python" <<END
#!/bin/sh
case "\$1 \$2" in
  "-m pip") [ ! -e '@/refuses' ] || { echo "No matching distribution" >&2; exit 1; }
            echo "\$@" >> '$3/pip.log'; echo shared > '$3/lib/package' ;;
  "-V "*) echo Python 3.11.7 ;;
  "-c "*) PATH='$REAL_PATH' exec python3 "\$@" ;;
esac
END
chmod +x "$3/bin/python"
printf '#!%s/bin/python\nprint("tool")\n' "$3" > "$3/bin/tool"
chmod +x "$3/bin/tool"
ln -s python "$3/bin/python3"
)";

class BuildTest : public ::testing::Test {
 protected:
  BuildTest() {
    scratch_.Write(absl::StrCat("home/code/", kTree, "/main.py"), "print('as it was')\n");
    std::string python = kPython3;
    python.replace(python.find('@'), 1, scratch_ / "bin");
    scratch_.Write("bin/python3", python);
    EXPECT_EQ(chmod((scratch_ / "bin/python3").c_str(), 0755), 0);
    file_.name = "muster.yml";
  }

  BuildPlan Plan(const SubmitOptions& options = {}) { return PlanBuild(file_, kTree, options, home_).value(); }
  struct Said {
    int exit_code = -1;
    std::string text;
  };
  // Runs the commands in one shell, as the build task does.
  Said RunCommands(const BuildPlan& plan) {
    const std::string script = absl::StrCat("set -e\n", absl::StrJoin(plan.commands, "\n"), "\n");
    scratch_.Write("script", script);
    const std::string directory = plan.directory.empty() ? scratch_.path() : plan.directory;
    const char* path = std::getenv("PATH");
    const std::string command =
        absl::StrCat("cd '", directory, "' && REAL_PATH='", path, "' PATH='", scratch_ / "bin", ":", path, "' sh '",
                     scratch_ / "script", "' > '", scratch_ / "said", "' 2>&1");
    const int status = std::system(command.c_str());
    return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1, .text = scratch_.Read("said")};
  }
  // Does all of a build; returns the commands' output.
  std::string Build(const BuildPlan& plan) {
    const auto right = PrepareBuild(plan, home_, kTree);
    EXPECT_TRUE(right.ok()) << right.status();
    const Said said = RunCommands(plan);
    EXPECT_EQ(said.exit_code, 0) << said.text;
    EXPECT_TRUE(MarkBuilt(plan).ok());
    return said.text;
  }
  // Returns the path relative to the scratch folder.
  std::string Below(const std::string& path) const { return std::filesystem::relative(path, scratch_.path()); }

  const ScratchFolder scratch_;
  const Home home_{scratch_ / "home"};
  ExperimentFile file_;
};

TEST_F(BuildTest, ThereIsNothingToDo) {
  for (const Framework framework : {Framework::kAny, Framework::kMuster, Framework::kTensorflow}) {
    file_.framework = framework;
    file_.version = framework == Framework::kTensorflow ? "" : "2.15.0";
    const BuildPlan plan = Plan();
    EXPECT_FALSE(plan.needed);
    EXPECT_THAT(plan.commands, IsEmpty());
    EXPECT_EQ(plan.code, scratch_ / "home/code/0123");
    EXPECT_EQ(plan.environment_folder, "");
  }
  file_.framework = Framework::kPytorch;
  file_.version = "2.1.0";
  EXPECT_FALSE(Plan({.no_venv = true}).needed);
  EXPECT_TRUE(Plan().needed);
}

TEST_F(BuildTest, InstallRunsOnceForTheSameCode) {
  file_.install = {"echo 'it'\"'\"'s \\n' > made", "cat main.py >> made"};
  const BuildPlan plan = Plan();
  EXPECT_TRUE(plan.needed);
  EXPECT_EQ(plan.directory, plan.code);
  EXPECT_THAT(Build(plan), AllOf(HasSubstr("$ " + file_.install[0]), HasSubstr("$ cat main.py >> made")));
  EXPECT_THAT(scratch_.Read(Below(plan.code) + "/made"), AllOf(HasSubstr("it's"), HasSubstr("as it was")));
  EXPECT_FALSE(scratch_.Has("home/code/0123/made"));

  const BuildPlan again = Plan();
  EXPECT_FALSE(again.needed);
  EXPECT_EQ(again.code, plan.code);
  EXPECT_EQ(again.environment_folder, "");
}

TEST_F(BuildTest, InstallEndsWithTheFirstThatFails) {
  file_.install = {"echo first", "exit 3", "echo third"};
  const BuildPlan plan = Plan();
  ASSERT_TRUE(PrepareBuild(plan, home_, kTree).ok());
  const Said said = RunCommands(plan);
  EXPECT_EQ(said.exit_code, 3);
  EXPECT_THAT(said.text, AllOf(HasSubstr("first"), Not(HasSubstr("third"))));
}

TEST_F(BuildTest, BuildsAreKnownByAllThatCounts) {
  file_.install = {"make"};
  const auto code = [&](const std::string& tree, const SubmitOptions& options = {}) {
    return PlanBuild(file_, tree, options, home_)->code;
  };
  const std::string first = code(kTree);
  EXPECT_EQ(code(kTree), first);
  EXPECT_NE(code("4567"), first);
  file_.install = {"make "};
  EXPECT_NE(code(kTree), first);
  file_.install = {"ma", "ke"};
  EXPECT_NE(code(kTree), first);
  file_.install = {"make"};
  file_.run = {"python main.py"};
  EXPECT_EQ(code(kTree), first);
  file_.framework = Framework::kTensorflow;
  EXPECT_EQ(code(kTree), first);
  file_.version = "2.15.0";
  const std::string versioned = code(kTree);
  EXPECT_NE(versioned, first);
  EXPECT_EQ(code(kTree, {.no_venv = true}), first);
  file_.gpu_version = true;
  EXPECT_NE(code(kTree), versioned);
}

TEST_F(BuildTest, AVersionIsAnEnvironmentForAllWithIt) {
  file_.framework = Framework::kTensorflow;
  file_.version = "2.15.0";
  const BuildPlan plan = Plan();
  EXPECT_EQ(plan.environment_folder, scratch_ / "home/environments/tensorflow-2.15.0");
  EXPECT_EQ(plan.code, scratch_ / "home/code/0123");
  EXPECT_EQ(plan.directory, "");
  EXPECT_THAT(Build(plan), HasSubstr("$ python3 -m venv"));
  EXPECT_THAT(scratch_.Read(Below(plan.environment_folder) + "/pip.log"), HasSubstr("tensorflow==2.15.0\n"));

  const auto other = PlanBuild(file_, "4567", {}, home_).value();
  EXPECT_FALSE(other.needed);
  EXPECT_EQ(other.environment_folder, plan.environment_folder);
}

TEST_F(BuildTest, PackagesOfVersions) {
  struct Case {
    Framework framework;
    const char* version;
    bool gpu;
    const char* name;
    const char* package;
  };
  constexpr Case kCases[] = {
      {Framework::kTensorflow, "1.2.1", true, "tensorflow-1.2.1-gpu", "'tensorflow-gpu==1.2.1'"},
      {Framework::kTensorflow, "1.2.1", false, "tensorflow-1.2.1", "'tensorflow==1.2.1'"},
      {Framework::kTensorflow, "2.11.0", true, "tensorflow-2.11.0-gpu", "'tensorflow-gpu==2.11.0'"},
      {Framework::kTensorflow, "2.12.0", true, "tensorflow-2.12.0-gpu", "'tensorflow==2.12.0'"},
      {Framework::kTensorflow, "10.0", true, "tensorflow-10.0-gpu", "'tensorflow==10.0'"},
      {Framework::kPytorch, "2.1.0+cpu", false, "pytorch-2.1.0+cpu", "'torch==2.1.0+cpu'"},
  };
  for (const Case& each : kCases) {
    file_.framework = each.framework;
    file_.version = each.version;
    file_.gpu_version = each.gpu;
    const BuildPlan plan = Plan();
    EXPECT_EQ(plan.environment_folder, scratch_ / absl::StrCat("home/environments/", each.name));
    EXPECT_THAT(absl::StrJoin(plan.commands, "\n"), HasSubstr(each.package));
  }
}

TEST_F(BuildTest, AVersionThatIsNoneIsRefused) {
  file_.framework = Framework::kTensorflow;
  for (const char* version : {"../../etc", "2.15; reboot", "'", "-e", " ", ".", "2.15\n"}) {
    file_.version = version;
    const auto plan = PlanBuild(file_, kTree, {}, home_);
    EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument) << version;
    EXPECT_THAT(std::string(plan.status().message()),
                AllOf(HasSubstr("muster.yml: train.tensorflow.version"), HasSubstr("--no-venv")));
  }
}

TEST_F(BuildTest, AVersionThatCannotBeHadSaysWhatToDo) {
  file_.framework = Framework::kTensorflow;
  file_.version = "1.2.1";
  scratch_.Write("bin/refuses", "");
  const BuildPlan plan = Plan();
  ASSERT_TRUE(PrepareBuild(plan, home_, kTree).ok());
  Said said = RunCommands(plan);
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_THAT(said.text, AllOf(HasSubstr("No matching distribution"),
                               HasSubstr("tensorflow==1.2.1 can't be installed for Python 3.11.7"),
                               HasSubstr("train.tensorflow.version"), HasSubstr("--no-venv")));
  EXPECT_TRUE(Plan().needed);

  scratch_.Write("bin/python3", "#!/bin/sh\nexit 1\n");
  said = RunCommands(plan);
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_THAT(said.text, AllOf(HasSubstr("python3-venv"), HasSubstr("--no-venv"), Not(HasSubstr("can't be had"))));
}

TEST_F(BuildTest, InstallAddsToAnEnvironmentOfItsOwn) {
  file_.framework = Framework::kTensorflow;
  file_.version = "2.15.0";
  file_.install = {"echo own > \"$VIRTUAL_ENV/lib/added\"", "command -v tool > which"};
  const BuildPlan plan = Plan();
  Build(plan);
  EXPECT_EQ(plan.environment_folder, std::filesystem::path(plan.code).parent_path() / "environment");
  const std::string own = Below(plan.environment_folder);
  const std::string shared = "home/environments/tensorflow-2.15.0";
  EXPECT_EQ(scratch_.Read(own + "/lib/package"), "shared\n");
  EXPECT_EQ(scratch_.Read(own + "/lib/added"), "own\n");
  EXPECT_FALSE(scratch_.Has(shared + "/lib/added"));
  // Programs of the environment run its python, and are found first.
  EXPECT_EQ(scratch_.Read(Below(plan.code) + "/which"), plan.environment_folder + "/bin/tool\n");
  EXPECT_THAT(scratch_.Read(own + "/bin/tool"), HasSubstr("#!" + plan.environment_folder + "/bin/python\n"));
  EXPECT_EQ(access((scratch_ / (own + "/bin/tool")).c_str(), X_OK), 0);
  EXPECT_THAT(scratch_.Read(shared + "/bin/tool"), HasSubstr("#!" + (scratch_ / shared) + "/bin/python\n"));

  // A build of other code finds the environment.
  scratch_.Write("home/code/4567/main.py", "");
  const auto next = PlanBuild(file_, "4567", {}, home_).value();
  EXPECT_TRUE(next.needed);
  EXPECT_THAT(next.folders, ElementsAre(std::filesystem::path(next.code).parent_path()));
  EXPECT_THAT(absl::StrJoin(next.commands, "\n"), Not(HasSubstr("-m venv")));
  file_.install.clear();
  EXPECT_FALSE(Plan().needed);
}

TEST_F(BuildTest, TwoDoNotBuildTheSame) {
  file_.install = {"true"};
  const BuildPlan plan = Plan();
  {
    const auto right = PrepareBuild(plan, home_, kTree).value();
    const auto second = PrepareBuild(plan, home_, kTree);
    EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable) << second.status();
    EXPECT_TRUE(scratch_.Has(Below(plan.code) + "/main.py"));
    ASSERT_TRUE(MarkBuilt(plan).ok());
  }
  // The second's plan is outdated now; it must not empty what exists.
  const auto late = PrepareBuild(plan, home_, kTree);
  EXPECT_EQ(late.status().code(), absl::StatusCode::kUnavailable) << late.status();
  EXPECT_TRUE(scratch_.Has(Below(plan.code) + "/main.py"));
  EXPECT_FALSE(Plan().needed);
}

TEST_F(BuildTest, ABuildThatWasKilledIsBegunAnew) {
  file_.install = {"true"};
  const BuildPlan plan = Plan();
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto right = PrepareBuild(plan, home_, kTree);
    scratch_.Write(Below(plan.code) + "/half", "");
    const char said = right.ok() ? 'y' : 'n';
    if (write(ready[1], &said, 1) == 1) pause();
    _exit(1);
  }
  char said = 0;
  ASSERT_EQ(read(ready[0], &said, 1), 1);
  EXPECT_EQ(said, 'y');
  EXPECT_TRUE(Plan().needed);
  EXPECT_TRUE(absl::IsUnavailable(PrepareBuild(plan, home_, kTree).status()));
  EXPECT_EQ(kill(child, SIGKILL), 0);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  const auto anew = PrepareBuild(plan, home_, kTree).value();
  EXPECT_FALSE(scratch_.Has(Below(plan.code) + "/half"));
  EXPECT_TRUE(scratch_.Has(Below(plan.code) + "/main.py"));
  close(ready[0]);
  close(ready[1]);
}

TEST_F(BuildTest, CodeThatIsGoneIsNotFound) {
  file_.install = {"true"};
  const auto plan = PlanBuild(file_, "gone", {}, home_).value();
  EXPECT_EQ(PrepareBuild(plan, home_, "gone").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(BuildTest, FoldersThatAnExperimentUses) {
  file_.framework = Framework::kPytorch;
  file_.version = "2.1.0";
  file_.install = {"make"};
  const auto folders = BuildFoldersOf(file_, kTree, {}, home_).value();
  EXPECT_FALSE(scratch_.Has("home/environments"));
  const std::string build = std::filesystem::path(Plan().code).parent_path();
  EXPECT_THAT(folders, ElementsAre(scratch_ / "home/environments/pytorch-2.1.0", build));
  file_.install.clear();
  EXPECT_THAT(*BuildFoldersOf(file_, kTree, {.no_venv = true}, home_), IsEmpty());
}

}  // namespace
}  // namespace muster::build_test
