// Finds in what a task has written last that its program lacks a shared library. Pure, thread-safe.
#pragma once

#include <deque>
#include <string>

#include "muster/launch/task/exit_status.h"

namespace muster {

// Returns " (libtorch.so, a shared library of its program, isn't found on h2; …)" for the dynamic linker's exit code
// and words, otherwise "". `host`: empty on this machine.
std::string MissingLibraryText(const ExitStatus& status, const std::deque<std::string>& last_lines,
                               const std::string& host);

}  // namespace muster
