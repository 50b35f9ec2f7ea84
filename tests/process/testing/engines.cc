#include "tests/process/testing/engines.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/testing/by_hand.h"

namespace muster {
namespace {

constexpr int kHosts = 4;
constexpr int kCpusOfNode = 64;  // tests aren't about waiting for them

}  // namespace

OnEveryEngine::Suite& OnEveryEngine::OfSuite() {
  static Suite suite;
  return suite;
}

std::string OnEveryEngine::WhyNot(const std::string& engine) {
  if (engine == "local") return "";
  return engine == "slurm" ? SlurmCluster::WhyNot() : SimulatedHosts::WhyNot();
}

std::string OnEveryEngine::BaseOf(const std::string& engine) {
  if (engine == "local" || !WhyNot(engine).empty()) return "";
  Suite& suite = OfSuite();
  if (suite.hosts == nullptr) suite.hosts = std::make_unique<SimulatedHosts>(kHosts);
  if (engine != "slurm") return "";
  if (suite.slurm == nullptr)
    suite.slurm = std::make_unique<SlurmCluster>(*suite.hosts, std::vector<int>(kHosts, kCpusOfNode));
  return absl::StrCat(suite.hosts->shared(), "/test", ++suite.tests);
}

void OnEveryEngine::SetUp() {
  if (const std::string why = WhyNot(GetParam()); !why.empty()) GTEST_SKIP() << why;
  if (!on_hosts()) return;
  aside_ = absl::StrCat(hosts().shared(), "/aside");
  std::filesystem::create_directory(aside_);
}

void OnEveryEngine::TearDown() {
  if (!on_hosts() || OfSuite().hosts == nullptr) return;
  for (const std::string& host : hosts().names()) {
    if (OfSuite().slurm == nullptr)
      hosts().AwaitNothingOn(host);
    else
      OfSuite().slurm->AwaitNothingElseOn(host);
  }
  std::filesystem::remove_all(aside_);
}

void OnEveryEngine::TearDownTestSuite() {
  OfSuite().slurm.reset();
  OfSuite().hosts.reset();
}

std::string OnEveryEngine::Aside(const std::string& name) const {
  return aside_.empty() ? ExperimentsTest::Aside(name) : absl::StrCat(aside_, "/", name);
}

std::vector<std::string> OnEveryEngine::Command(const std::vector<std::string>& arguments) const {
  const std::vector<std::string> words = ExperimentsTest::Command(arguments);
  if (!on_hosts() || OfSuite().hosts == nullptr) return words;
  return hosts().On("h0", is_supervised_here() ? words : Joined({"env", OfSuite().slurm->variable()}, words));
}

std::string OnEveryEngine::MoreOfFile() const {
  if (!on_hosts()) return "";
  const std::string grace = absl::StrCat("grace: ", file_grace_, "\n", file_more_);
  if (is_supervised_here())
    return absl::StrCat("hosts: ", file_hosts_, "\nssh_config: ", hosts().ssh_config(), "\n", grace);
  const auto nodes = std::count(file_hosts_.begin(), file_hosts_.end(), ',') + 1;
  return absl::StrCat("on: slurm\nslurm: {nodes: ", nodes, ", nodelist: \"", file_hosts_, "\"}\n", grace);
}

std::string EngineName(const ::testing::TestParamInfo<const char*>& info) { return info.param; }

}  // namespace muster
