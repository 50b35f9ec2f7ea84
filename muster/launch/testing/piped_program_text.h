// Runs a program to its end with a given stdin, for tests of what is said to it.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "muster/launch/system/piped_program.h"

namespace muster {

struct ProgramText {
  ExitStatus status;
  std::string output;
  std::string errors;
};

// Appends what can be read; returns false at the end.
inline bool ReadSome(int fd, std::string& into) {
  std::array<char, 4096> piece;
  const ssize_t got = read(fd, piece.data(), piece.size());
  if (got > 0) into.append(piece.data(), static_cast<size_t>(got));
  return got != 0;
}

// Where the programs of tests are.
inline constexpr char kUsualPath[] = "PATH=/usr/local/bin:/usr/bin:/bin";

// `input` must fit a pipe (64 KiB).
inline ProgramText TextOf(const std::vector<std::string>& arguments, const std::string& input,
                          const std::vector<std::string>& environment = {kUsualPath}) {
  auto program = PipedProgram::Start(arguments, environment);
  EXPECT_TRUE(program.ok()) << program.status();
  if (!program.ok()) return {};
  EXPECT_EQ(write(program->stdin_fd(), input.data(), input.size()), static_cast<ssize_t>(input.size()));
  program->CloseStdin();
  ProgramText text;
  std::array<pollfd, 2> streams = {{{program->stdout_fd(), POLLIN, 0}, {program->stderr_fd(), POLLIN, 0}}};
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    poll(streams.data(), streams.size(), -1);
    for (size_t i = 0; i < streams.size(); ++i)
      if (streams[i].revents != 0 && !ReadSome(streams[i].fd, i == 0 ? text.output : text.errors)) streams[i].fd = -1;
  }
  text.status = program->Wait();
  return text;
}

}  // namespace muster
