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
                                   HasSubstr("ray.nodes: nodes is '0'; accepted: a whole number from 1"),
                                   HasSubstr("ray.resources.CPU: resources.CPU is '-1'; accepted: a number from 0")));
}

}  // namespace
}  // namespace muster::hosts_reader_test
