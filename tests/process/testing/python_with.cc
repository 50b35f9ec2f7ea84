#include "tests/process/testing/python_with.h"

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/testing/process.h"

namespace muster {
namespace {

bool CanImport(const std::string& python, const std::string& module) {
  if (!std::filesystem::exists(python)) return false;
  Process process({python, "-c", "import " + module}, {.environment = {{"TF_CPP_MIN_LOG_LEVEL", "2"}}});
  return process.Wait() == 0;
}

}  // namespace

std::string FolderOfPython() { return SourceFolder() + "/.venv/bin"; }

std::string PythonFolderWith(const std::string& module) {
  for (const std::string& folder : {FolderOfPython(), SourceFolder() + "/build/peers/bin"})
    if (CanImport(folder + "/python", module)) return folder;
  return "";
}

std::string PythonFirst(const std::string& folder) {
  return absl::StrCat("  env: {PATH: '", folder, ":", std::getenv("PATH"), "', TF_CPP_MIN_LOG_LEVEL: 2}\n");
}

}  // namespace muster
