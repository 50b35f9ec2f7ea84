#include "muster/launch/spec/hosts_reader.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace muster::hosts_reader_test {
namespace {

using ::testing::HasSubstr, ::testing::UnorderedElementsAre;

HostsSpec Read(const std::string& text) { return ParseExperimentFile(text, "muster.yml").value().hosts; }

std::string MistakesIn(const std::string& text) {
  return std::string(ParseExperimentFile(text, "muster.yml").status().message());
}

TEST(HostsReaderTest, RayHasNodesAndResources) {
  const RaySetting ray = Read(
                             "on: ray\nray: {nodes: 3, address: \"http://h1:8265\", python: /opt/python, autoscaler: "
                             "true, resources: {CPU: 2.5, TPU: 1}}\nproject: p\ntrain: {run: x}\n")
                             .ray;
  EXPECT_EQ(ray, (RaySetting{.nodes = 3,
                             .address = "http://h1:8265",
                             .python = "/opt/python",
                             .autoscaler = true,
                             .resources = {{"CPU", 2.5}, {"TPU", 1}}}));
  EXPECT_EQ(Read("on: ray\nray: {nodes: null}\nproject: p\ntrain: {run: x}\n").ray, RaySetting());
}

TEST(HostsReaderTest, MistakesOfRayAreNamed) {
  EXPECT_THAT(std::vector<std::string>(absl::StrSplit(
                  MistakesIn("ray: {node: 1, nodes: 0, resources: {CPU: -1}}\nproject: p\ntrain: {run: x}"), '\n')),
              UnorderedElementsAre(HasSubstr("muster.yml:1: ray.node: 'node' is unknown (nearest: nodes)"),
                                   HasSubstr("ray.nodes: is '0'; accepted: a whole number from 1"),
                                   HasSubstr("ray.resources.CPU: is '-1'; accepted: a number from 0")));
}

TEST(HostsReaderTest, AKeyWithAMapIsCheckedAsAnyOther) {
  const std::string rest = "\nproject: p\ntrain: {run: x}";
  EXPECT_THAT(MistakesIn("ray: {resource: {CPU: 2}}" + rest),
              HasSubstr("muster.yml:1: ray.resource: 'resource' is unknown (nearest: resources)"));
  EXPECT_THAT(MistakesIn("spark: {config: {spark.task.cpus: 2}}" + rest),
              HasSubstr("muster.yml:1: spark.config: 'config' is unknown (nearest: conf)"));
  EXPECT_THAT(MistakesIn("kubernetes: {resource: {cpu: 2}}" + rest),
              HasSubstr("muster.yml:1: kubernetes.resource: 'resource' is unknown"));
  EXPECT_THAT(MistakesIn("ray: {nodes: {CPU: 2}}" + rest), HasSubstr("ray.nodes: is '{\"CPU\":2}'"));
  EXPECT_THAT(MistakesIn("kubernetes: {shm: lots}" + rest), HasSubstr("kubernetes.shm: is 'lots'; accepted: a number"));
  EXPECT_THAT(MistakesIn("ray: {resources: 2}" + rest), HasSubstr("ray.resources: is '2'; accepted: a map"));
  EXPECT_THAT(MistakesIn("spark: {conf: a}" + rest), HasSubstr("spark.conf: is 'a'; accepted: a map"));
  EXPECT_EQ(Read("ray: {resources: null}\nspark: {conf: {}}" + rest).ray, RaySetting());
}

TEST(HostsReaderTest, SparkHasItsOwnSettings) {
  const SparkSetting spark = Read(
                                 "on: spark\nspark:\n  nodes: 2\n  address: spark://h1:7077\n  start_timeout: 1h\n  "
                                 "conf: {spark.dynamicAllocation.enabled: false, spark.yarn.queue: a b, "
                                 "spark.task.cpus: 2}\nproject: p\ntrain: {run: x}\n")
                                 .spark;
  EXPECT_EQ(spark, (SparkSetting{.nodes = 2,
                                 .address = "spark://h1:7077",
                                 .start_timeout = absl::Hours(1),
                                 .conf = {{"spark.dynamicAllocation.enabled", "false"},
                                          {"spark.task.cpus", "2"},
                                          {"spark.yarn.queue", "a b"}}}));
  EXPECT_THAT(
      std::vector<std::string>(absl::StrSplit(
          MistakesIn("spark: {nodes: 0, conf: {spark.submit.deployMode: cluster}}\nproject: p\ntrain: {run: x}"),
          '\n')),
      UnorderedElementsAre(HasSubstr("muster.yml:1: spark.nodes: is '0'; accepted: a whole number from 1"),
                           HasSubstr("spark.conf.spark.submit.deployMode: is 'cluster'")));
}

TEST(HostsReaderTest, AnEngineThatGivesAJobItsHostsTakesNone) {
  for (const char* engine : {"slurm", "ray", "spark", "kubernetes"}) {
    const std::string on = absl::StrCat("on: ", engine, "\nproject: p\ntrain: {run: x}\n");
    EXPECT_TRUE(ParseExperimentFile(on, "muster.yml").ok());
    EXPECT_THAT(std::vector<std::string>(
                    absl::StrSplit(MistakesIn(absl::StrCat(on, "hosts: h1\nssh_config: my.conf\n")), '\n')),
                UnorderedElementsAre(HasSubstr(absl::StrCat("muster.yml:4: hosts: is there beside on: ", engine,
                                                            ", where the hosts are those of the job, and ", engine,
                                                            ".nodes says how many")),
                                     HasSubstr("muster.yml:5: ssh_config: is there beside on: ")));
    EXPECT_THAT(MistakesIn(absl::StrCat(on, "host_file: hosts\n")),
                HasSubstr("muster.yml:4: host_file: is there beside"));
  }
  for (const char* on : {"on: ssh", "on: local"})
    EXPECT_EQ(Read(absl::StrCat(on, "\nhosts: h1\nproject: p\ntrain: {run: x}\n")).hosts.size(), 1U) << on;
}

TEST(HostsReaderTest, TypingMistakesInOptionsOfSbatchAreNamedAllAtOnce) {
  const std::string file = "project: p\non: slurm\ntrain: {run: x}\nslurm:\n  ";
  EXPECT_THAT(std::vector<std::string>(absl::StrSplit(
                  MistakesIn(file + "tiem: 30\n  maxrequeues: 2\n  cpus_per_task: 4\n  extras: [--hold]\n"), '\n')),
              UnorderedElementsAre(HasSubstr("muster.yml:5: slurm.tiem: 'tiem' is unknown (nearest: time)"),
                                   HasSubstr("muster.yml:6: slurm.maxrequeues: 'maxrequeues' is unknown (nearest: "
                                             "max_requeues)"),
                                   HasSubstr("muster.yml:7: slurm.cpus_per_task: 'cpus_per_task' is unknown (nearest: "
                                             "cpus-per-task)"),
                                   HasSubstr("muster.yml:8: slurm.extras: 'extras' is unknown (nearest: extra)")));
  // sbatch knows more than muster does.
  EXPECT_EQ(
      Read(file +
           "site-plugin: 7\n  mem: 2G\n  mem-bind: none\n  gres: gpu\n  constraint: ib&fast\n  extra: [--tim=3]\n")
          .slurm,
      (SlurmSetting{
          .options =
              {{"site-plugin", "7"}, {"mem", "2G"}, {"mem-bind", "none"}, {"gres", "gpu"}, {"constraint", "ib&fast"}},
          .extra = {"--tim=3"}}));
}

// Each is a few letters from another one.
TEST(HostsReaderTest, OptionsThatSomeSbatchHasAreNoTypingMistakes) {
  const std::string file = "project: p\non: slurm\ntrain: {run: x}\nslurm:\n  ";
  for (const std::string name : {"tasks-per-node", "ntasks-per-tres", "container-type", "tres-per-task", "segment"})
    EXPECT_EQ(Read(file + name + ": 2\n").slurm, (SlurmSetting{.options = {{name, "2"}}})) << name;
  for (const char* name : {"cluster", "external"})
    EXPECT_THAT(MistakesIn(absl::StrCat(file, name, ": x\n")), HasSubstr("isn't for experiments")) << name;
}

}  // namespace
}  // namespace muster::hosts_reader_test
