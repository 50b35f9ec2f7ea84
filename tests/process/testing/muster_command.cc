#include "tests/process/testing/muster_command.h"

#include <gtest/gtest.h>

#include "muster/base/testing/built_at.h"
#include "tests/process/testing/by_hand.h"

namespace muster {
namespace {

bool IsOneLine(const std::string& text) { return !text.empty() && text.find('\n') == text.size() - 1; }

}  // namespace

Said RunMuster(const std::vector<std::string>& words, const ProcessOptions& options) {
  Process process(Joined({BinFolder() + "/muster"}, words), options);
  const int exit_code = process.Wait();
  return {exit_code, process.out, process.err};
}

std::string MusterOut(const std::vector<std::string>& words, const ProcessOptions& options) {
  const Said said = RunMuster(words, options);
  EXPECT_EQ(said.exit_code, 0) << said.out << said.err;
  EXPECT_EQ(said.err, "");
  return said.out;
}

nlohmann::json MusterJson(std::vector<std::string> words, const ProcessOptions& options) {
  words.emplace_back("--json");
  const std::string out = MusterOut(words, options);
  EXPECT_TRUE(IsOneLine(out)) << out;
  return nlohmann::json::parse(out, nullptr, /*allow_exceptions=*/false);
}

std::string MusterMistake(const std::vector<std::string>& words, const ProcessOptions& options, int exit_code) {
  const Said said = RunMuster(words, options);
  EXPECT_EQ(said.exit_code, exit_code) << said.out << said.err;
  EXPECT_EQ(said.out, "");
  EXPECT_TRUE(IsOneLine(said.err)) << said.err;
  return said.err;
}

}  // namespace muster
