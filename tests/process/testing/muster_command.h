// The `muster` command as a script runs it: to its end, with its exit code and what it printed.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/process/testing/process.h"

namespace muster {

struct Said {
  int exit_code = -1;  // as Process::Wait() returns it
  std::string out, err;
};

Said RunMuster(const std::vector<std::string>& words, const ProcessOptions& options = {});
// The same, but it must end with 0 and print nothing on stderr. Returns its stdout.
std::string MusterOut(const std::vector<std::string>& words, const ProcessOptions& options = {});
// Returns what `muster WORDS --json` prints, which must be one line.
nlohmann::json MusterJson(std::vector<std::string> words, const ProcessOptions& options = {});
// Expects that `muster WORDS` ends with this code and prints nothing but one line on stderr. Returns the line.
std::string MusterMistake(const std::vector<std::string>& words, const ProcessOptions& options = {}, int exit_code = 2);

}  // namespace muster
