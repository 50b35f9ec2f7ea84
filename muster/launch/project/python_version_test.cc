#include "muster/launch/project/python_version.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "muster/base/testing/scratch_folder.h"

namespace muster::python_version_test {
namespace {

using Python = std::optional<PythonVersion>;

void WriteExecutable(const std::string& path) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << "#!/bin/sh\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

TEST(PythonOnPathTest, IsWhatTheProgramBehindTheLinksIsCalled) {
  const ScratchFolder scratch;
  WriteExecutable(scratch / "lib/python3.11");
  for (const char* folder : {"bin", "venv", "shim", "odd"}) std::filesystem::create_directory(scratch / folder);
  std::filesystem::create_symlink(scratch / "lib/python3.11", scratch / "bin/python3");
  std::filesystem::create_symlink(scratch / "bin/python3", scratch / "venv/python3");
  WriteExecutable(scratch / "shim/python3");
  EXPECT_EQ(PythonOnPath(scratch / "venv"), Python({3, 11}));
  EXPECT_EQ(PythonOnPath(scratch / "shim"), std::nullopt) << "a script says no version";
  EXPECT_EQ(PythonOnPath(scratch / "odd"), std::nullopt);
}

TEST(NewestPythonForTest, IsThatOfTheRelease) {
  EXPECT_EQ(NewestPythonFor(Framework::kTensorflow, "1.2.1"), Python({3, 6}));
  EXPECT_EQ(NewestPythonFor(Framework::kTensorflow, "1.15.5"), Python({3, 7}));
  EXPECT_EQ(NewestPythonFor(Framework::kTensorflow, "2.0.0"), Python({3, 7}));
  EXPECT_EQ(NewestPythonFor(Framework::kTensorflow, "2.15.0"), Python({3, 11}));
  EXPECT_EQ(NewestPythonFor(Framework::kPytorch, "1.13.1"), Python({3, 11}));
  for (const char* unknown : {"2.99.0", "3.0.0", "2", "", "nightly", "x.y"})
    EXPECT_EQ(NewestPythonFor(Framework::kTensorflow, unknown), std::nullopt) << unknown;
  EXPECT_EQ(NewestPythonFor(Framework::kAny, "1.2.1"), std::nullopt);
}

TEST(VersionProblemTest, IsKnownUnlessTheEnvironmentIsThereOrUnwanted) {
  const ScratchFolder scratch;
  const Home home(scratch.path());
  ExperimentFile file;
  file.framework = Framework::kTensorflow;
  file.version = "1.2.1";
  file.gpu_version = true;
  EXPECT_EQ(VersionProblem(file, {}, home, PythonVersion{3, 11}),
            "1.2.1 was released for Python 3.6 and older, this machine's python3 is 3.11");
  EXPECT_EQ(VersionProblem(file, {.no_venv = true}, home, PythonVersion{3, 11}), "");
  EXPECT_EQ(VersionProblem(file, {}, home, PythonVersion{3, 6}), "");
  EXPECT_EQ(VersionProblem(file, {}, home, std::nullopt), "");
  std::filesystem::create_directories(scratch / "environments/tensorflow-1.2.1-gpu");
  EXPECT_NE(VersionProblem(file, {}, home, PythonVersion{3, 11}), "") << "a build that has failed";
  std::ofstream(scratch / "environments/tensorflow-1.2.1-gpu/.muster-done") << "";
  EXPECT_EQ(VersionProblem(file, {}, home, PythonVersion{3, 11}), "");
}

}  // namespace
}  // namespace muster::python_version_test
