#include "muster/launch/system/simple_command.h"

#include <gtest/gtest.h>

namespace muster::simple_command_test {
namespace {

TEST(SimpleCommand, AProgramWithItsArguments) {
  for (const char* command :
       {"python train.py", "  ./train --rate 0.1\n", "python train.py --name 'a; b' \"c | d\" $HOME",
        "a/b > out 2> err", "python \"${MUSTER_VALUE_X}\" < in",
        "sh -c 'trap \"exit 1\" TERM; while :; do sleep 1; done'"})
    EXPECT_TRUE(IsSimpleCommand(command)) << command;
}

TEST(SimpleCommand, NotWhatNeedsAShell) {
  for (const char* command : {"",
                              "cd folder",
                              "a; b",
                              "a && b",
                              "a | b",
                              "a &",
                              "a\nb",
                              "(a)",
                              "RATE=1 python",
                              "$PROGRAM x",
                              "echo `date`",
                              "python $(date)",
                              "python \"$(date)\"",
                              "cat << E",
                              "if true",
                              "{ a",
                              "exec a",
                              "'quoted' a",
                              "a 'b",
                              "a \\; b",
                              ". ./file",
                              "export A=b",
                              "a # why",
                              "trap x",
                              "wait",
                              "echo a"})
    EXPECT_FALSE(IsSimpleCommand(command)) << command;
}

}  // namespace
}  // namespace muster::simple_command_test
