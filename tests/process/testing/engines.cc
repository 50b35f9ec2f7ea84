#include "tests/process/testing/engines.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/testing/by_hand.h"

namespace muster {

void OnEveryEngine::SetUp() {
  if (!on_hosts()) return;
  if (const std::string why = SimulatedHosts::WhyNot(); !why.empty()) GTEST_SKIP() << why;
  if (hosts_ == nullptr) hosts_ = std::make_unique<SimulatedHosts>(4);
  aside_ = hosts_->shared() + "/aside";
  std::filesystem::create_directory(aside_);
}

void OnEveryEngine::TearDown() {
  if (!on_hosts() || hosts_ == nullptr) return;
  for (const std::string& host : hosts_->names()) hosts_->AwaitNothingOn(host);
  std::filesystem::remove_all(aside_);
}

void OnEveryEngine::TearDownTestSuite() { hosts_.reset(); }

std::string OnEveryEngine::Aside(const std::string& name) const {
  return aside_.empty() ? ExperimentsTest::Aside(name) : absl::StrCat(aside_, "/", name);
}

std::vector<std::string> OnEveryEngine::Command(const std::vector<std::string>& arguments) const {
  const std::vector<std::string> words = ExperimentsTest::Command(arguments);
  return on_hosts() && hosts_ != nullptr ? hosts_->On("h0", words) : words;
}

std::string OnEveryEngine::MoreOfFile() const {
  if (!on_hosts()) return "";
  return absl::StrCat("hosts: ", file_hosts_, "\ngrace: 10s\nssh_config: ", hosts_->ssh_config(), "\n", file_more_);
}

std::string EngineName(const ::testing::TestParamInfo<const char*>& info) { return info.param; }

}  // namespace muster
