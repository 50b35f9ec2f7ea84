// What the programs hold of the machine that built them: nothing, so that they can be given away. Tests and benchmarks
// know their checkout.
#include <gtest/gtest.h>

#include <string>

#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"

namespace muster::program_paths_test {
namespace {

TEST(ProgramPaths, NoProgramHoldsAPathOfItsCheckout) {
  // With and without torch, with and without code of their own. This test's program needs them built.
  for (const char* name : {"muster", "digits", "hogwild", "downpour_easy", "ensemble", "train_and_evaluate"}) {
    const auto bytes = PosixFileSystem().ReadFile(BinFolder() + "/" + name);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    const size_t found = bytes->find(SourceFolder() + "/");
    EXPECT_EQ(found, std::string::npos) << name << " holds it at byte " << found;
  }
}

}  // namespace
}  // namespace muster::program_paths_test
