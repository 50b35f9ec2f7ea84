#include "muster/store/checkpoints/save_directory.h"

#include <gtest/gtest.h>

#include "muster/base/files/memory_file_system.h"
#include "muster/checkpoint/checkpoint_directory.h"

namespace muster::save_directory_test {
namespace {

class SaveDirectoryTest : public ::testing::Test {
 protected:
  void Announce(const std::string& directory, const std::string& save_id) {
    ASSERT_TRUE(AnnounceSave(files_, directory, save_id).ok());
  }

  MemoryFileSystem files_;
};

TEST_F(SaveDirectoryTest, IsTheModelDirWhateverTheChiefCallsIt) {
  SaveDirectory where(files_, "/here/model");
  Announce("/here/model", "a1");
  EXPECT_EQ(where.For("/mounted/elsewhere/model", "a1").value(), "/here/model");
}

TEST_F(SaveDirectoryTest, WithAModelDirNoOtherIsWritten) {
  SaveDirectory where(files_, "/here/model");
  Announce("/other", "a1");
  EXPECT_TRUE(absl::IsNotFound(where.For("/other", "a1").status()));
  Announce("/here/model", "a1");
  EXPECT_EQ(where.For("/other", "a1").value(), "/here/model");
}

TEST_F(SaveDirectoryTest, WithoutOneTheFirstThatCarriesTheAnnouncementStays) {
  SaveDirectory where(files_, "");
  EXPECT_TRUE(absl::IsNotFound(where.For("/first", "a1").status()));
  Announce("/first", "a1");
  EXPECT_EQ(where.For("/first", "a1").value(), "/first");
  Announce("/second", "a2");
  EXPECT_TRUE(absl::IsNotFound(where.For("/second", "a2").status()));
  Announce("/first", "a3");
  EXPECT_EQ(where.For("/first", "a3").value(), "/first");
}

}  // namespace
}  // namespace muster::save_directory_test
