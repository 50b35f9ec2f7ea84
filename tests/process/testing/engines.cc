#include "tests/process/testing/engines.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/testing/by_hand.h"

namespace muster {

std::unique_ptr<SimulatedHosts>& OnEveryEngine::OfSuite() {
  static std::unique_ptr<SimulatedHosts> hosts;
  return hosts;
}

void OnEveryEngine::SetUp() {
  if (!on_hosts()) return;
  if (const std::string why = SimulatedHosts::WhyNot(); !why.empty()) GTEST_SKIP() << why;
  if (OfSuite() == nullptr) OfSuite() = std::make_unique<SimulatedHosts>(4);
  aside_ = OfSuite()->shared() + "/aside";
  std::filesystem::create_directory(aside_);
}

void OnEveryEngine::TearDown() {
  if (!on_hosts() || OfSuite() == nullptr) return;
  for (const std::string& host : OfSuite()->names()) OfSuite()->AwaitNothingOn(host);
  std::filesystem::remove_all(aside_);
}

void OnEveryEngine::TearDownTestSuite() { OfSuite().reset(); }

std::string OnEveryEngine::Aside(const std::string& name) const {
  return aside_.empty() ? ExperimentsTest::Aside(name) : absl::StrCat(aside_, "/", name);
}

std::vector<std::string> OnEveryEngine::Command(const std::vector<std::string>& arguments) const {
  const std::vector<std::string> words = ExperimentsTest::Command(arguments);
  return on_hosts() && OfSuite() != nullptr ? OfSuite()->On("h0", words) : words;
}

std::string OnEveryEngine::MoreOfFile() const {
  if (!on_hosts()) return "";
  return absl::StrCat("hosts: ", file_hosts_, "\ngrace: ", file_grace_, "\nssh_config: ", OfSuite()->ssh_config(), "\n",
                      file_more_);
}

std::string EngineName(const ::testing::TestParamInfo<const char*>& info) { return info.param; }

}  // namespace muster
