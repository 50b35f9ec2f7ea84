#include "tests/process/testing/beds/engine_bed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/testing/beds/host_commands.h"
#include "tests/process/testing/beds/kube_bed.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/not_on_engine.h"
#include "tests/process/testing/process.h"
#include "tests/process/testing/ray_cluster.h"
#include "tests/process/testing/slurm_cluster.h"
#include "tests/process/testing/spark_cluster.h"

namespace muster {
namespace {

// Has the controller of Slurm; also the node on which nothing runs but terminals.
constexpr char kController[] = "h5";
constexpr int kHosts = 5;  // with that of the controller

// Tests aren't about waiting for them. The controller's is the last one.
const std::vector<int>& CpusOfNodes() {
  static const std::vector<int> cpus = {64, 48, 32, 64, 4};
  return cpus;
}

// Ray's and Spark's.
const std::vector<int>& CpusOfTwo() {
  static const std::vector<int> cpus = {64, 48};
  return cpus;
}

// The hosts of several engines, and the Slurm on them once somebody has asked for it.
struct SharedHosts {
  SimulatedHosts hosts{kHosts};
  std::unique_ptr<SlurmCluster> slurm;  // ends first
  int tests = 0;
};

std::unique_ptr<SharedHosts>& OfSuite() {
  static std::unique_ptr<SharedHosts> shared;
  return shared;
}

class SshBed : public EngineBed {
 public:
  SshBed() {
    if (OfSuite() == nullptr) OfSuite() = std::make_unique<SharedHosts>();
  }
  SimulatedHosts& hosts() override { return OfSuite()->hosts; }
  std::string Lines(const Place& place) override {
    return absl::StrCat("hosts: ", absl::StrJoin(place.hosts, ","), "\nssh_config: ", hosts().ssh_config(), "\n");
  }
  void AwaitNothingLeft() override {
    if (OfSuite()->slurm == nullptr) return EngineBed::AwaitNothingLeft();
    for (const std::string& host : hosts().names()) OfSuite()->slurm->AwaitNothingElseOn(host);
  }
};

class CommandBed : public SshBed {
 public:
  void Begin() override { commands_.Write(); }
  std::string Lines(const Place& place) override { return commands_.Lines(place.hosts); }
  void AwaitNothingLeft() override {
    SshBed::AwaitNothingLeft();
    commands_.ExpectAllGivenBack();
  }

 private:
  HostCommands commands_{hosts()};
};

class SlurmBed : public SshBed {
 public:
  SlurmBed() {
    if (OfSuite()->slurm == nullptr)
      OfSuite()->slurm =
          std::make_unique<SlurmCluster>(hosts(), CpusOfNodes(), SlurmFeatures{.controller = kController});
  }
  std::string NewFolder() override { return absl::StrCat(hosts().shared(), "/test", ++OfSuite()->tests); }
  std::vector<std::string> OnH0(const std::vector<std::string>& words, const std::string& index) override {
    return hosts().On("h0", Joined({"env", "MUSTER_INDEX=" + index, OfSuite()->slurm->variable()}, words));
  }
  std::string Lines(const Place& place) override {
    return absl::StrCat("on: slurm\nslurm: {nodes: ", place.hosts.size(), ", nodelist: \"",
                        absl::StrJoin(place.hosts, ","), "\"}\n");
  }
  // All nodes, but not the controller.
  std::vector<std::string> HiddenFromH0() override { return {hosts().names().begin(), hosts().names().end() - 1}; }
};

// Each command runs in a step of its own, of an allocation that is held meanwhile. The experiments are other jobs.
class SlurmPtyBed : public SlurmBed {
 public:
  SlurmPtyBed() {
    const std::string said =
        OfSuite()->slurm->Ask({"salloc", "--no-shell", "--ntasks=1", absl::StrCat("--nodelist=", kController)});
    const std::vector<std::string> granted = After(said, "salloc: Granted job allocation ");
    EXPECT_EQ(granted.size(), 1U) << said;
    if (!granted.empty()) job_ = granted.front();
  }
  std::vector<std::string> OnH0(const std::vector<std::string>& words, const std::string& index) override {
    // The python is named by its path: a test may have put another one into the PATH.
    return SlurmBed::OnH0(
        Joined({SourceFolder() + "/.venv/bin/python", SourceFolder() + "/tests/process/testing/beds/step_terminal.py",
                hosts().shared(), job_},
               words),
        index);
  }

 private:
  std::string job_;
};

class RayBed : public EngineBed {
 public:
  SimulatedHosts& hosts() override { return hosts_; }
  std::string NewFolder() override { return absl::StrCat(hosts().shared(), "/test", ++tests_); }
  std::vector<std::string> OnH0(const std::vector<std::string>& words, const std::string& index) override {
    return hosts().On("h0", Joined({"env", "MUSTER_INDEX=" + index}, words));
  }
  std::string Lines(const Place& place) override {
    return absl::StrCat("on: ray\nray: {nodes: ", place.hosts.size(), ", address: \"", RayCluster::address(),
                        "\", python: ", RayCluster::python(), "}\n");
  }
  void AwaitNothingLeft() override {
    for (const std::string& host : hosts().names()) ray_.AwaitNothingElseOn(host);
  }
  // The dashboard is on the head, h1.
  std::vector<std::string> HiddenFromH0() override { return {"h2"}; }

 private:
  SimulatedHosts hosts_{static_cast<int>(CpusOfTwo().size())};
  // The supervisors find programs that tests write, as those of Slurm do by the shell of the command.
  RayCluster ray_{hosts_, CpusOfTwo(), {.path = absl::StrCat(hosts_.shared(), "/aside/bin:", RayFeatures().path)}};
  int tests_ = 0;
};

// Its hosts see neither the project nor MUSTER_HOME; they and h0, where drivers and supervisors are, reach each other.
class SparkBed : public EngineBed {
 public:
  SimulatedHosts& hosts() override { return hosts_; }
  std::vector<std::string> OnH0(const std::vector<std::string>& words, const std::string& /*index*/) override {
    return hosts().On("h0", Joined(Joined({"env"}, spark_.Variables()), words));
  }
  std::string Lines(const Place& place) override { return SparkCluster::Lines(place.hosts.size()); }
  void AwaitNothingLeft() override { spark_.AwaitNothingElse(); }

 private:
  SimulatedHosts hosts_{static_cast<int>(CpusOfTwo().size())};
  SparkCluster spark_{hosts_, CpusOfTwo()};
};

std::map<std::string, std::unique_ptr<EngineBed>>& Beds() {
  static std::map<std::string, std::unique_ptr<EngineBed>> beds;
  return beds;
}

std::unique_ptr<EngineBed> MakeBed(const std::string& place) {
  if (place == "ssh") return std::make_unique<SshBed>();
  if (place == "command") return std::make_unique<CommandBed>();
  if (place == "slurm") return std::make_unique<SlurmBed>();
  if (place == "slurm_pty") return std::make_unique<SlurmPtyBed>();
  if (place == "ray") return std::make_unique<RayBed>();
  if (place == "spark") return std::make_unique<SparkBed>();
  if (place == "kubernetes") return std::make_unique<KubeBed>();
  return nullptr;
}

}  // namespace

std::vector<std::string> EngineBed::OnH0(const std::vector<std::string>& words, const std::string& /*index*/) {
  return hosts().On("h0", words);
}

void EngineBed::AwaitNothingLeft() {
  for (const std::string& host : hosts().names()) hosts().AwaitNothingOn(host);
}

std::string WhyNoBed(const std::string& place) {
  if (place == "local") return "";
  if (EngineOf(place) == "slurm") return SlurmCluster::WhyNot();
  if (place == "ray") return RayCluster::WhyNot();
  if (place == "spark") return SparkCluster::WhyNot();
  return place == "kubernetes" ? KubeCluster::WhyNot() : SimulatedHosts::WhyNot();
}

EngineBed* BedOf(const std::string& place) {
  std::unique_ptr<EngineBed>& bed = Beds()[place];
  if (bed == nullptr) bed = MakeBed(place);
  return bed.get();
}

void EndBeds() {
  Beds().clear();
  OfSuite().reset();
}

}  // namespace muster
