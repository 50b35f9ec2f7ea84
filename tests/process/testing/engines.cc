#include "tests/process/testing/engines.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/testing/by_hand.h"

namespace muster {
namespace {

constexpr char kController[] = "h5";
constexpr int kHosts = 5;  // with that of the controller

// Tests aren't about waiting for them.
const std::vector<int>& CpusOfNodes() {
  static const std::vector<int> cpus = {64, 48, 32, 64};
  return cpus;
}

// All that isn't the controller's.
std::vector<std::string> NodesOf(const SimulatedHosts& hosts) {
  return {hosts.names().begin(), hosts.names().begin() + static_cast<ptrdiff_t>(CpusOfNodes().size())};
}

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
    suite.slurm = std::make_unique<SlurmCluster>(*suite.hosts, CpusOfNodes(), SlurmFeatures{.controller = kController});
  return absl::StrCat(suite.hosts->shared(), "/test", ++suite.tests);
}

void OnEveryEngine::SetUp() {
  if (const std::string why = WhyNot(GetParam()); !why.empty()) GTEST_SKIP() << why;
  if (!on_hosts()) return;
  aside_ = absl::StrCat(hosts().shared(), "/aside");
  std::filesystem::create_directory(aside_);
  if (!is_supervised_here()) hosts().CutFrom("h0", NodesOf(hosts()));
}

void OnEveryEngine::TearDown() {
  if (!on_hosts() || OfSuite().hosts == nullptr) return;
  for (const std::string& host : hosts().names()) {
    if (OfSuite().slurm == nullptr)
      hosts().AwaitNothingOn(host);
    else
      OfSuite().slurm->AwaitNothingElseOn(host);
  }
  if (!is_supervised_here()) hosts().HealFrom("h0", NodesOf(hosts()));
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
  if (is_supervised_here()) return hosts().On("h0", words);
  // Jobs don't inherit it, so the supervisor has another index than the commands.
  return hosts().On("h0", Joined({"env", OfSuite().slurm->variable(), "MUSTER_INDEX=" + home() + ".index"}, words));
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
