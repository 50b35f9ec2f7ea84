#include "muster/base/files/counter_file.h"

#include <gtest/gtest.h>

#include "muster/base/testing/scratch_folder.h"

namespace muster {
namespace {

TEST(CounterFileTest, TheNumberChangesWithEachCount) {
  const ScratchFolder scratch;
  const std::string path = scratch / "count";
  EXPECT_EQ(ReadCounter(path), std::nullopt);
  CounterFile file = CounterFile::Open(path).value();
  EXPECT_EQ(ReadCounter(path), 0);
  file.Count();
  const auto first = ReadCounter(path);
  file.Count();
  EXPECT_NE(ReadCounter(path), first);
}

TEST(CounterFileTest, AnotherWriterGoesOn) {
  const ScratchFolder scratch;
  const std::string path = scratch / "count";
  CounterFile::Open(path).value().Count();
  CounterFile::Open(path).value().Count();
  EXPECT_EQ(ReadCounter(path), 2);
}

TEST(CounterFileTest, AFolderThatIsNotThereIsAnError) { EXPECT_FALSE(CounterFile::Open("/no/such/folder/count").ok()); }

}  // namespace
}  // namespace muster
