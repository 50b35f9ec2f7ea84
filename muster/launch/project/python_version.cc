#include "muster/launch/project/python_version.h"

#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/launch/project/build.h"
#include "muster/launch/system/find_program.h"
#include "muster/launch/system/shell_word.h"

namespace muster {
namespace {

// Releases up to and including `last` have packages for `python` at most.
struct ReleasedFor {
  int major, last_minor;
  PythonVersion python;
};

// From tensorflow.org/install/source ("Tested build configurations") and the package index.
constexpr ReleasedFor kTensorflowReleases[] = {{1, 12, {3, 6}}, {1, 99, {3, 7}},  {2, 1, {3, 7}},   {2, 4, {3, 8}},
                                               {2, 7, {3, 9}},  {2, 11, {3, 10}}, {2, 15, {3, 11}}, {2, 19, {3, 12}}};
// From the package index.
constexpr ReleasedFor kPytorchReleases[] = {{1, 3, {3, 7}},   {1, 6, {3, 8}},  {1, 9, {3, 9}},  {1, 12, {3, 10}},
                                            {1, 13, {3, 11}}, {2, 1, {3, 11}}, {2, 4, {3, 12}}, {2, 8, {3, 13}}};

// Parses the first two numbers of "1.2.1".
std::optional<PythonVersion> FirstTwoNumbers(const std::string& version) {
  const std::vector<std::string> parts = absl::StrSplit(version, '.');
  PythonVersion numbers;
  if (parts.size() < 2 || !absl::SimpleAtoi(parts[0], &numbers.major) || !absl::SimpleAtoi(parts[1], &numbers.minor))
    return std::nullopt;
  return numbers;
}

std::string VersionText(const PythonVersion& version) { return absl::StrCat(version.major, ".", version.minor); }

}  // namespace

std::optional<PythonVersion> PythonOnPath(const std::string& search_path) {
  const auto program = FindProgram("python3", search_path);
  if (!program.ok()) return std::nullopt;
  // The name of the program wouldn't say it: it may be a script that chooses one.
  const std::string command = absl::StrCat("timeout 5 ", QuotedWord(*program), " -V 2>/dev/null");
  const std::unique_ptr<FILE, int (*)(FILE*)> answer(popen(command.c_str(), "re"), pclose);
  char line[64] = {};
  if (answer == nullptr || std::fgets(line, sizeof line, answer.get()) == nullptr) return std::nullopt;
  constexpr absl::string_view kPython = "Python ";
  if (!absl::StartsWith(line, kPython)) return std::nullopt;
  return FirstTwoNumbers(line + kPython.size());
}

std::optional<PythonVersion> NewestPythonFor(Framework framework, const std::string& version) {
  const std::optional<PythonVersion> release = FirstTwoNumbers(version);
  if (!release.has_value()) return std::nullopt;
  const auto newest = [&release](const auto& table) -> std::optional<PythonVersion> {
    for (const ReleasedFor& row : table)
      if (release->major == row.major && release->minor <= row.last_minor) return row.python;
    return std::nullopt;
  };
  if (framework == Framework::kTensorflow) return newest(kTensorflowReleases);
  if (framework == Framework::kPytorch) return newest(kPytorchReleases);
  return std::nullopt;
}

std::string VersionProblem(const ExperimentFile& file, const SubmitOptions& options, const Home& home,
                           const std::optional<PythonVersion>& python) {
  const std::optional<PythonVersion> newest = NewestPythonFor(file.framework, file.version);
  if (options.no_venv || !python.has_value() || !newest.has_value() || *python <= *newest) return "";
  const auto folders = BuildFoldersOf(file, "", options, home);
  if (!folders.ok()) return "";
  for (const std::string& folder : *folders) {
    std::error_code error;
    if (absl::StartsWith(folder, home.environments()) &&
        std::filesystem::exists(absl::StrCat(folder, "/", kBuildDoneName), error))
      return "";
  }
  return absl::StrCat(file.version, " was released for Python ", VersionText(*newest),
                      " and older, this machine's python3 is ", VersionText(*python));
}

}  // namespace muster
