#include "muster/launch/spec/go_on_command.h"

#include <gmock/gmock.h>

namespace muster::go_on_command_test {
namespace {

TEST(GoOnCommandTest, AnotherFileThanTheUsualOneIsNamed) {
  EXPECT_EQ(GoOnCommand("4", "muster.yml"), "muster train --experiment 4");
  EXPECT_EQ(GoOnCommand("gpu1:4.2", "my file.yml"), "muster train -f 'my file.yml' --experiment gpu1:4.2");
  EXPECT_EQ(GoesOnBy("4", "tl.yml"),
            "; muster train -f tl.yml --experiment 4 goes on with it, from its last checkpoint");
}

}  // namespace
}  // namespace muster::go_on_command_test
