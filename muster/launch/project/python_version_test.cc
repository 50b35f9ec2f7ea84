#include "muster/launch/project/python_version.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "muster/base/testing/scratch_folder.h"

namespace muster::python_version_test {
namespace {

using Python = std::optional<PythonVersion>;

// Makes a folder with a python3 that does this, and returns it.
std::string FolderOfPython(const ScratchFolder& scratch, const std::string& name, const std::string& script) {
  std::filesystem::create_directory(scratch / name);
  const std::string path = scratch / name + "/python3";
  std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return scratch / name;
}

TEST(PythonOnPathTest, IsWhatPythonSays) {
  const ScratchFolder scratch;
  EXPECT_EQ(PythonOnPath(FolderOfPython(scratch, "it's", "echo Python 3.11.2 $1 | sed s/-V//")), Python({3, 11}));
  EXPECT_EQ(PythonOnPath(FolderOfPython(scratch, "new", "echo Python 4.0.0a1+")), Python({4, 0}));
  EXPECT_EQ(PythonOnPath(FolderOfPython(scratch, "odd", "echo no version")), std::nullopt);
  EXPECT_EQ(PythonOnPath(FolderOfPython(scratch, "silent", "exit 1")), std::nullopt);
  EXPECT_EQ(PythonOnPath("/no/such/folder"), std::nullopt);
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
