#include "muster/launch/spec/hosts_reader.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

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

}  // namespace
}  // namespace muster::hosts_reader_test
