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

const std::vector<int>& CpusOfRay() {
  static const std::vector<int> cpus = {64, 48};
  return cpus;
}

// Returns the nodes of an engine that h0 needn't reach: all but Slurm's controller and Ray's head.
std::vector<std::string> FarNodes(const std::string& engine, const SimulatedHosts& hosts) {
  if (engine == "ray") return {"h2"};
  return {hosts.names().begin(), hosts.names().begin() + static_cast<ptrdiff_t>(CpusOfNodes().size())};
}

}  // namespace

OnEveryEngine::Suite& OnEveryEngine::OfSuite() {
  static Suite suite;
  return suite;
}

std::string OnEveryEngine::WhyNot(const std::string& engine) {
  if (engine == "local") return "";
  if (engine == "ray") return RayCluster::WhyNot();
  return engine == "slurm" ? SlurmCluster::WhyNot() : SimulatedHosts::WhyNot();
}

std::string OnEveryEngine::BaseOf(const std::string& engine) {
  if (engine == "local" || !WhyNot(engine).empty()) return "";
  Suite& suite = OfSuite();
  if (engine == "ray") {
    StartRay();
    return absl::StrCat(suite.ray_hosts->shared(), "/test", ++suite.tests);
  }
  if (suite.hosts == nullptr) suite.hosts = std::make_unique<SimulatedHosts>(kHosts);
  if (engine != "slurm") return "";
  if (suite.slurm == nullptr)
    suite.slurm = std::make_unique<SlurmCluster>(*suite.hosts, CpusOfNodes(), SlurmFeatures{.controller = kController});
  return absl::StrCat(suite.hosts->shared(), "/test", ++suite.tests);
}

void OnEveryEngine::StartRay() {
  Suite& suite = OfSuite();
  if (suite.ray != nullptr) return;
  suite.ray_hosts = std::make_unique<SimulatedHosts>(static_cast<int>(CpusOfRay().size()));
  // The supervisors find programs that tests write, as those of Slurm do by the shell of the command.
  const std::string path = absl::StrCat(suite.ray_hosts->shared(), "/aside/bin:", RayFeatures().path);
  suite.ray = std::make_unique<RayCluster>(*suite.ray_hosts, CpusOfRay(), RayFeatures{.path = path});
}

void OnEveryEngine::SetUp() {
  if (const std::string why = WhyNot(GetParam()); !why.empty()) GTEST_SKIP() << why;
  if (!on_hosts()) return;
  aside_ = absl::StrCat(hosts().shared(), "/aside");
  std::filesystem::create_directory(aside_);
  if (!is_supervised_here()) hosts().CutFrom("h0", FarNodes(GetParam(), hosts()));
}

void OnEveryEngine::TearDown() {
  const Suite& suite = OfSuite();
  const bool on_ray = std::string(GetParam()) == "ray";
  if (!on_hosts() || (on_ray ? suite.ray == nullptr : suite.hosts == nullptr)) return;
  for (const std::string& host : hosts().names()) {
    if (on_ray)
      suite.ray->AwaitNothingElseOn(host);
    else if (suite.slurm == nullptr)
      hosts().AwaitNothingOn(host);
    else
      suite.slurm->AwaitNothingElseOn(host);
  }
  if (!is_supervised_here()) hosts().HealFrom("h0", FarNodes(GetParam(), hosts()));
  std::filesystem::remove_all(aside_);
}

void OnEveryEngine::TearDownTestSuite() {
  OfSuite().slurm.reset();
  OfSuite().hosts.reset();
  OfSuite().ray.reset();
  OfSuite().ray_hosts.reset();
}

std::string OnEveryEngine::Aside(const std::string& name) const {
  return aside_.empty() ? ExperimentsTest::Aside(name) : absl::StrCat(aside_, "/", name);
}

std::vector<std::string> OnEveryEngine::Command(const std::vector<std::string>& arguments) const {
  const std::vector<std::string> words = ExperimentsTest::Command(arguments);
  const bool on_ray = std::string(GetParam()) == "ray";
  if (!on_hosts() || (on_ray ? OfSuite().ray == nullptr : OfSuite().hosts == nullptr)) return words;
  if (is_supervised_here()) return hosts().On("h0", words);
  // Jobs don't inherit it, so the supervisor has another index than the commands.
  const std::vector<std::string> index = {"env", "MUSTER_INDEX=" + home() + ".index"};
  if (on_ray) return hosts().On("h0", Joined(index, words));
  return hosts().On("h0", Joined(Joined(index, {OfSuite().slurm->variable()}), words));
}

std::string OnEveryEngine::MoreOfFile() const {
  if (!on_hosts()) return "";
  const std::string grace = absl::StrCat("grace: ", file_grace_, "\n", file_more_);
  if (is_supervised_here())
    return absl::StrCat("hosts: ", file_hosts_, "\nssh_config: ", hosts().ssh_config(), "\n", grace);
  const auto nodes = std::count(file_hosts_.begin(), file_hosts_.end(), ',') + 1;
  if (std::string(GetParam()) == "ray")
    return absl::StrCat("on: ray\nray: {nodes: ", nodes, ", address: \"", RayCluster::address(),
                        "\", python: ", RayCluster::python(), "}\n", grace);
  return absl::StrCat("on: slurm\nslurm: {nodes: ", nodes, ", nodelist: \"", file_hosts_, "\"}\n", grace);
}

std::string EngineName(const ::testing::TestParamInfo<const char*>& info) { return info.param; }

}  // namespace muster
