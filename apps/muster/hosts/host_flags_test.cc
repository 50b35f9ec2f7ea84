#include "apps/muster/hosts/host_flags.h"

#include <gmock/gmock.h>

#include <string>

#include "muster/base/testing/scratch_folder.h"

namespace muster::host_flags_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::Pair;

std::vector<std::string> NamesOf(const absl::StatusOr<HostSetting>& setting) {
  std::vector<std::string> names;
  EXPECT_TRUE(setting.ok()) << setting.status();
  if (setting.ok())
    for (const Host& host : setting->hosts) names.push_back(host.name);
  return names;
}

class HostSettingTest : public ::testing::Test {
 protected:
  HostSettingTest() {
    folder_.Write("hosts.txt", "c slots=2\n");
    folder_.Write("ssh_config", "");
  }
  absl::StatusOr<HostSetting> Of(const HostFlags& flags, const HostsSpec& spec = {}) {
    return HostSettingOf(flags, spec, folder_.path());
  }
  std::string WhyNot(const HostFlags& flags, const HostsSpec& spec = {}) {
    return std::string(Of(flags, spec).status().message());
  }
  const ScratchFolder folder_;
  const HostsSpec file_ = {.hosts = {{.name = "a"}, {.name = "b"}}, .placement = {{"ps", {"b"}}}};
};

TEST_F(HostSettingTest, AFlagWinsOverTheFile) {
  EXPECT_THAT(NamesOf(Of({})), IsEmpty());
  EXPECT_THAT(NamesOf(Of({}, file_)), ElementsAre("a", "b"));
  EXPECT_THAT(Of({}, file_)->placement, ElementsAre(Pair("ps", ElementsAre("b"))));
  EXPECT_THAT(NamesOf(Of({.on = "local"}, file_)), IsEmpty());
  EXPECT_THAT(NamesOf(Of({.hosts = "x"}, file_)), ElementsAre("x"));
  EXPECT_TRUE(Of({.hosts = "x"}, file_)->placement.empty()) << "of hosts that aren't used";
  EXPECT_FALSE(Of({.hosts = "b,x"}, file_)->placement.empty());
  HostsSpec local = file_;
  local.on = "local";
  EXPECT_THAT(NamesOf(Of({}, local)), IsEmpty());
  EXPECT_THAT(NamesOf(Of({.on = "ssh"}, local)), ElementsAre("a", "b"));
  EXPECT_THAT(NamesOf(Of({.hosts = "x"}, local)), ElementsAre("x"));
  HostsSpec grace = file_;
  grace.grace = absl::Minutes(1);
  EXPECT_EQ(Of({}, grace)->grace, absl::Minutes(1));
  EXPECT_EQ(Of({.grace = "20"}, grace)->grace, absl::Seconds(20));
  EXPECT_EQ(Of({}, file_)->grace, kUsualGrace);
}

TEST_F(HostSettingTest, CommandsGetTheirNumberOfHosts) {
  HostsSpec spec{.on = "command", .hosts = {{.name = "3"}}, .grace = absl::Minutes(1)};
  EXPECT_THAT(WhyNot({}, spec), HasSubstr("by which commands?"));
  spec.command.emplace().acquire.argv = {"./get"};
  const auto setting = Of({}, spec);
  ASSERT_TRUE(setting.ok()) << setting.status();
  ASSERT_TRUE(setting->command.has_value());
  EXPECT_EQ(setting->command->hosts, 3);
  EXPECT_EQ(setting->command->folder, folder_.path());
  EXPECT_EQ(setting->grace, absl::Minutes(1));
  EXPECT_TRUE(setting->is_elsewhere());
  EXPECT_EQ(Of({.hosts = "5"}, spec)->command->hosts, 5);
  EXPECT_FALSE(Of({.on = "local"}, spec)->is_elsewhere());
  EXPECT_THAT(WhyNot({.hosts = "a,b"}, spec), HasSubstr("hosts is 'a,b'; accepted: how many hosts"));
  EXPECT_THAT(WhyNot({.host_file = "hosts.txt"}, spec), HasSubstr("acquire says which hosts there are"));
  spec.on.clear();
  EXPECT_THAT(WhyNot({}, spec), HasSubstr("accepted: `on: command`"));
  EXPECT_THAT(WhyNot({.hosts_by = "c.yml"}), HasSubstr("--hosts_by: accepted with --on command only"));
  EXPECT_THAT(WhyNot({.on = "command", .hosts_by = "none.yml"}), HasSubstr("isn't there"));
}

TEST_F(HostSettingTest, PathsOfTheFileBeginInItsFolder) {
  const auto setting = Of({}, {.host_file = "hosts.txt", .ssh_config = "ssh_config"});
  EXPECT_THAT(NamesOf(setting), ElementsAre("c"));
  EXPECT_EQ(setting->ssh_config, folder_ / "ssh_config");
}

TEST_F(HostSettingTest, WhatDoesntFitIsSaid) {
  EXPECT_THAT(WhyNot({.on = "ssh"}), HasSubstr("on which hosts? accepted for ssh: --hosts a,b"));
  EXPECT_THAT(WhyNot({}, {.on = "ssh"}), HasSubstr("on which hosts?"));
  EXPECT_THAT(WhyNot({.on = "shh"}, file_), HasSubstr("--on 'shh' (nearest: ssh)"));
  EXPECT_THAT(WhyNot({.on = "local", .hosts = "a"}), HasSubstr("--on local: runs on this machine only"));
  EXPECT_THAT(WhyNot({.grace = "20"}), HasSubstr("--grace and --ssh_config: accepted with"));
  EXPECT_THAT(WhyNot({}, {.host_file = "none.txt"}), HasSubstr("none.txt' isn't there"));
  EXPECT_THAT(WhyNot({.ssh_config = "/none"}, file_), HasSubstr("--ssh_config '/none': there is no such file"));
}

TEST(HostsOfSlurmTest, AreTheNodesOfTheAllocation) {
  const std::vector<std::string> job = {"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[1-2],m"};
  const auto hosts = HostsOf({.on = "slurm", .grace = "20"}, job);
  ASSERT_TRUE(hosts.ok()) << hosts.status();
  EXPECT_THAT(*hosts, ElementsAre(Host{.name = "n1"}, Host{.name = "n2"}, Host{.name = "m"}));
  EXPECT_THAT(*HostsOf({}, job), IsEmpty());
  const auto why_not = [&](const HostFlags& flags, const std::vector<std::string>& environment) {
    return std::string(HostsOf(flags, environment).status().message());
  };
  EXPECT_THAT(why_not({.on = "slurm"}, {}), HasSubstr("--on slurm: this isn't within an allocation of Slurm"));
  EXPECT_THAT(why_not({.on = "slurm", .hosts = "n1"}, job), HasSubstr("accepted without --hosts"));
  EXPECT_THAT(why_not({.on = "slurm", .ssh_config = "c"}, job), HasSubstr("accepted without --hosts"));
  EXPECT_THAT(why_not({.on = "slrum"}, job),
              HasSubstr("--on 'slrum' (nearest: slurm); accepted: local, ssh, command, slurm"));
}

TEST(JobSettingTest, AFlagTakesThePlaceOfTheFilesOption) {
  HostsSpec file{.on = "slurm"};
  file.slurm.options = {{"partition", "gpu"}, {"nodes", "2"}, {"mem", "4G"}};
  file.slurm.max_requeues = 3;
  file.grace = absl::Seconds(40);
  const auto setting = HostSettingOf({.slurm = {"nodes=4", "exclusive", "mem="}}, file, "/");
  ASSERT_TRUE(setting.ok()) << setting.status();
  EXPECT_TRUE(setting->is_elsewhere());
  EXPECT_EQ(setting->slurm->options,
            (SbatchOptions{{"partition", "gpu"}, {"nodes", "4"}, {"exclusive", ""}, {"mem", std::nullopt}}));
  EXPECT_EQ(setting->slurm->max_requeues, 3);
  EXPECT_EQ(setting->grace, absl::Seconds(40));
  EXPECT_FALSE(HostSettingOf({.on = "local"}, file, "/")->is_elsewhere());
}

TEST(JobSettingTest, AFileWithSlurmAloneDoesntSayWhatShallRunIt) {
  HostsSpec file;
  file.slurm.options = {{"nodes", "2"}};
  EXPECT_THAT(std::string(HostSettingOf({}, file, "/").status().message()), HasSubstr("accepted: `on: slurm` there"));
  EXPECT_FALSE(HostSettingOf({.on = "local"}, file, "/")->is_elsewhere());
  EXPECT_TRUE(HostSettingOf({.on = "slurm"}, file, "/")->is_elsewhere());
  file.on = "local";
  EXPECT_FALSE(HostSettingOf({}, file, "/")->is_elsewhere());
}

TEST(JobSettingTest, RayHasItsOwnFlag) {
  HostsSpec file{.on = "ray"};
  file.ray = {.nodes = 2, .address = "http://h1:8265", .resources = {{"CPU", 4}}};
  const auto setting = HostSettingOf({.ray = {"nodes=3", "address=", "resources.CPU=", "autoscaler"}}, file, "/");
  ASSERT_TRUE(setting.ok()) << setting.status();
  EXPECT_EQ(setting->job_engine(), kRayEngine);
  EXPECT_TRUE(setting->is_elsewhere());
  EXPECT_EQ(*setting->ray, (RaySetting{.nodes = 3, .autoscaler = true}));
  EXPECT_FALSE(setting->slurm.has_value());
  file.on = "";
  EXPECT_THAT(std::string(HostSettingOf({}, file, "/").status().message()), HasSubstr("accepted: `on: ray` there"));
}

TEST(JobSettingTest, SparkHasItsOwnFlagAndAnAddress) {
  HostsSpec file{.on = "spark"};
  file.spark = {.nodes = 2, .address = "yarn", .conf = {{"spark.yarn.queue", "a"}}};
  const auto setting =
      HostSettingOf({.spark = {"nodes=3", "conf.spark.yarn.queue="}, .address = "spark://h1:7077"}, file, "/");
  ASSERT_TRUE(setting.ok()) << setting.status();
  EXPECT_EQ(setting->job_engine(), kSparkEngine);
  EXPECT_EQ(*setting->spark, (SparkSetting{.nodes = 3, .address = "spark://h1:7077"}));
  EXPECT_EQ(HostSettingOf({.on = "ray", .address = "http://h2:8265"}, {}, "/")->ray->address, "http://h2:8265");
  file.on = "";
  EXPECT_THAT(std::string(HostSettingOf({}, file, "/").status().message()), HasSubstr("accepted: `on: spark` there"));
}

TEST(JobSettingTest, WhatDoesntFitIsSaid) {
  const auto why_not = [](const HostFlags& flags) {
    return std::string(HostSettingOf(flags, {}, "/").status().message());
  };
  EXPECT_THAT(why_not({.on = "slurm", .hosts = "a"}), HasSubstr("accepted without --hosts"));
  EXPECT_THAT(why_not({.slurm = {"nodes=2"}}), HasSubstr("--slurm: accepted with --on slurm only"));
  EXPECT_THAT(why_not({.on = "slurm", .ray = {"nodes=2"}}), HasSubstr("--ray: accepted with --on ray only"));
  EXPECT_THAT(why_not({.on = "ray", .spark = {"nodes=2"}}), HasSubstr("--spark: accepted with --on spark only"));
  EXPECT_THAT(why_not({.on = "slurm", .address = "h"}), HasSubstr("--address: accepted with --on spark and --on ray"));
  EXPECT_THAT(why_not({.on = "spark", .spark = {"conf.spark.executor.memory"}}),
              HasSubstr("has no value; accepted: --spark conf.spark.executor.memory=VALUE"));
  EXPECT_THAT(why_not({.on = "spark", .address = "two words"}), HasSubstr("--address: address is 'two words'"));
  EXPECT_THAT(why_not({.on = "ray", .hosts = "a"}), HasSubstr("--ray nodes=N says how many; accepted without --hosts"));
  EXPECT_THAT(why_not({.on = "ray", .ray = {"nodes=0"}}), HasSubstr("--ray nodes=0: nodes is '0'"));
  EXPECT_THAT(std::string(HostsOf({.on = "ray"}, {}).status().message()), HasSubstr("accepted with muster train"));
  EXPECT_THAT(std::string(HostsOf({.on = "spark"}, {}).status().message()), HasSubstr("accepted with muster train"));
  EXPECT_THAT(why_not({.on = "slurm", .slurm = {"Nodes=2"}}), HasSubstr("'Nodes' is unknown (nearest: nodes)"));
  EXPECT_THAT(why_not({.on = "slurm", .slurm = {"array=1-9"}}), HasSubstr("option array isn't for experiments"));
  EXPECT_THAT(why_not({.on = "slurm", .slurm = {"comment=a\nb"}}), HasSubstr("a text of one line"));
  EXPECT_THAT(why_not({.on = "slurm", .slurm = {"max_requeues=-1"}}), HasSubstr("a whole number from 0"));
}

TEST(PortsTest, AFlagWinsOverTheFileAndBothAreForAnyEngine) {
  const HostsSpec file{.ports = PortRange{.first = 40000, .count = 101}};
  EXPECT_EQ(HostSettingOf({}, file, "/")->ports->ToString(), "40000-40100");
  EXPECT_EQ(HostSettingOf({.on = "slurm"}, file, "/")->ports->ToString(), "40000-40100");
  EXPECT_EQ(HostSettingOf({.hosts = "a", .ports = "5000-5001"}, file, "/")->ports->ToString(), "5000-5001");
  EXPECT_FALSE(HostSettingOf({}, {}, "/")->ports.has_value());
  EXPECT_THAT(std::string(HostSettingOf({.ports = "5000"}, {}, "/").status().message()),
              HasSubstr("--ports '5000' is no range of ports; accepted: FIRST-LAST"));
}

TEST(GivenHostFlagsTest, AreNamedAsTheFilesKeys) {
  EXPECT_THAT(GivenHostFlags({.on = "ssh", .host_file = "h"}), ElementsAre(Pair("host_file", "h"), Pair("on", "ssh")));
}

}  // namespace
}  // namespace muster::host_flags_test
