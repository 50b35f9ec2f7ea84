// What the programs hold of the machine that built them: nothing, so that they can be given away. Tests and benchmarks
// know their checkout.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "muster/base/testing/built_at.h"

namespace muster::program_paths_test {
namespace {

bool KnowsItsCheckout(const std::string& name) {
  return name.ends_with("_test") || name.starts_with("bench_") || name.starts_with("peers_") ||
         name.starts_with("steps_goals");
}

TEST(ProgramPaths, NoProgramHoldsAPathOfItsCheckout) {
  int programs = 0;
  for (const auto& file : std::filesystem::directory_iterator(BinFolder())) {
    const std::string name = file.path().filename();
    if (!file.is_regular_file() || KnowsItsCheckout(name)) continue;
    ++programs;
    std::ifstream stream(file.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    EXPECT_EQ(bytes.find(SourceFolder() + "/"), std::string::npos) << name;
  }
  EXPECT_GE(programs, 2) << "muster and a training program at least";
}

}  // namespace
}  // namespace muster::program_paths_test
