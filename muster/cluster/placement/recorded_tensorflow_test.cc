// Compares our results with what the real TensorFlow did (tests/data/tensorflow, recorded by
// tools/record_tensorflow.py). Cases in which we differ on purpose are listed here with the reason, and the difference
// itself is checked.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "muster/base/testing/built_at.h"
#include "muster/cluster/device.h"
#include "muster/cluster/identity/task_config.h"
#include "muster/cluster/placement/device_scope.h"
#include "muster/cluster/placement/placement.h"
#include "muster/cluster/placement/placement_text.h"
#include "muster/cluster/placement/replica_device_setter.h"

namespace muster::recorded_tensorflow_test {
namespace {

using nlohmann::json;

json Recorded(const std::string& name) {
  std::ifstream file(absl::StrCat(SourceFolder(), "/tests/data/tensorflow/", name));
  EXPECT_TRUE(file.good()) << name;
  return json::parse(file);
}

TEST(RecordedTensorFlow, Placement) {
  const json recorded = Recorded("placement.json");
  std::map<std::string, std::vector<VariableSpec>> models;
  for (const auto& [name, variables] : recorded.at("models").items()) {
    auto parsed = VariablesFromJson(variables.dump(), name).value();
    models[name] = parsed;
  }
  int compared = 0;
  for (const json& test : recorded.at("cases")) {
    SCOPED_TRACE(test.at("model").dump() + test.at("strategy").dump() + test.at("partition").dump());
    const std::vector<VariableSpec>& variables = models[test.at("model")];
    auto strategy = ParsePlacement(test.at("strategy").get<std::string>());
    auto partitioning = ParsePartitioning(test.at("partition").get<std::string>());
    ASSERT_TRUE(strategy.ok() && partitioning.ok());
    auto placed = PlaceVariables(variables, test.at("ps"), *strategy, *partitioning).value();
    json ours = json::array();
    for (const PlacedSlice& slice : placed.slices) {
      ours.push_back({variables[slice.variable].name, slice.shard, slice.ps, slice.bytes});
    }
    EXPECT_EQ(ours, test.at("placement"));
    ++compared;
  }
  EXPECT_GT(compared, 250);
}

TEST(RecordedTensorFlow, DeviceStrings) {
  int mistakes = 0;
  const json recorded = Recorded("devices.json");
  for (const json& test : recorded.at("cases")) {
    SCOPED_TRACE(test.dump());
    DeviceSpec merged;
    absl::Status status;
    for (const json& text : test.at("strings")) {
      auto parsed = DeviceSpec::Parse(text.get<std::string>());
      if (!parsed.ok()) {
        status = parsed.status();
        break;
      }
      merged = merged.MergedWith(*parsed);
    }
    EXPECT_EQ(status.ok(), test.contains("canonical")) << status;
    if (!status.ok()) {
      ++mistakes;
    } else if (test.contains("canonical")) {
      EXPECT_EQ(merged.ToString(), test.at("canonical").get<std::string>());
    }
  }
  EXPECT_GT(mistakes, 10);
}

DeviceFunction SetterOf(const json& arguments) {
  ReplicaDeviceSetterOptions options;
  options.ps_tasks = arguments.value("ps_tasks", options.ps_tasks);
  options.ps_device = arguments.value("ps_device", options.ps_device);
  options.worker_device = arguments.value("worker_device", options.worker_device);
  options.merge_devices = arguments.value("merge_devices", options.merge_devices);
  options.ps_ops = arguments.value("ps_ops", options.ps_ops);
  if (arguments.contains("cluster")) {
    auto cluster = ClusterSpec::FromJson(arguments.at("cluster"), "cluster").value();
    options.cluster = cluster;
  }
  return ReplicaDeviceSetter(options);
}

void OpenScopes(const json& devices, DeviceStack& stack, std::vector<std::unique_ptr<DeviceScope>>& scopes) {
  for (const json& device : devices) {
    scopes.push_back(device.is_null() ? std::make_unique<DeviceScope>(stack, DeviceFunction())
                                      : std::make_unique<DeviceScope>(stack, device.get<std::string>()));
  }
}

TEST(RecordedTensorFlow, DeviceScopes) {
  int compared = 0;
  const json recorded = Recorded("device_scopes.json");
  for (const json& test : recorded.at("cases")) {
    DeviceFunction setter = test.contains("setter") ? SetterOf(test.at("setter")) : nullptr;
    DeviceStack stack;
    for (const json& op : test.at("ops")) {
      SCOPED_TRACE(op.dump());
      std::vector<std::unique_ptr<DeviceScope>> scopes;
      OpenScopes(op.value("outer", json::array()), stack, scopes);
      if (test.contains("setter")) scopes.push_back(std::make_unique<DeviceScope>(stack, setter));
      OpenScopes(op.value("inner", json::array()), stack, scopes);
      auto device = stack.DeviceFor({.type = op.at("type"), .name = "op", .shape = {2}}).value();
      EXPECT_EQ(device.ToString(), op.at("device").get<std::string>());
      ++compared;
      while (!scopes.empty()) scopes.pop_back();
    }
  }
  EXPECT_GT(compared, 30);
}

// Cases in which we differ from TensorFlow's Estimator.
enum class Difference { kWeAccept, kWeRefuse, kOtherResult };
struct OnPurpose {
  Difference difference;
  const char* reason;
};
const std::map<std::string, OnPurpose>& Differences() {
  static const std::map<std::string, OnPurpose> differences = {
      {"no chief, ps:0", {Difference::kWeAccept, "with neither chief nor master worker 0 is the chief"}},
      {"no chief, worker:0", {Difference::kWeAccept, "the same"}},
      {"no chief, worker:1", {Difference::kWeAccept, "the same"}},
      {"no chief, evaluator:0", {Difference::kWeAccept, "the same"}},
      {"no chief, evaluator:4", {Difference::kWeAccept, "the same"}},
      {"empty text", {Difference::kWeAccept, "an empty variable is the same as none"}},
      {"index a fraction", {Difference::kWeRefuse, "TensorFlow cuts it to 1, another task than was meant, perhaps"}},
      {"index true", {Difference::kWeRefuse, "a wrong type"}},
      {"model_dir 5", {Difference::kWeRefuse, "a wrong type"}},
      {"service a string", {Difference::kWeAccept, "the key says nothing to us"}},
      {"session_master", {Difference::kOtherResult, "we have no sessions elsewhere; the master is the task's address"}},
  };
  return differences;
}

json Result(const TaskConfig& config) {
  return {{"cluster", json::parse(config.cluster().ToJson())},
          {"task", {{"type", config.task().job}, {"index", config.task().index}}},
          {"is_chief", config.is_chief()},
          {"num_ps", config.num_ps()},
          {"num_workers", config.num_workers()},
          {"global_id", config.global_id() < 0 ? json() : json(config.global_id())},
          {"master", config.master()},
          {"model_dir", config.model_dir()}};
}

// Converts a recorded result to our notation: addresses without "grpc://", "" for no model_dir.
json InOurNotation(json result) {
  result["master"] = std::string(absl::StripPrefix(result.at("master").get<std::string>(), "grpc://"));
  if (result.at("model_dir").is_null()) result["model_dir"] = "";
  return result;
}

TEST(RecordedTensorFlow, TaskConfig) {
  std::map<std::string, OnPurpose> left = Differences();
  int accepted = 0;
  int refused = 0;
  const json recorded = Recorded("task_config.json");
  for (const json& test : recorded.at("cases")) {
    std::string name = test.at("name");
    SCOPED_TRACE(name + ": " + test.at("tf_config").get<std::string>());
    auto ours = ResolveTaskConfig({.tf_config = test.at("tf_config").get<std::string>()});
    bool theirs_ok = test.contains("result");
    if (auto found = left.find(name); found != left.end()) {
      switch (found->second.difference) {
        case Difference::kWeAccept:
          EXPECT_TRUE(ours.ok() && !theirs_ok) << found->second.reason;
          break;
        case Difference::kWeRefuse:
          EXPECT_TRUE(!ours.ok() && theirs_ok) << found->second.reason;
          break;
        case Difference::kOtherResult:
          EXPECT_TRUE(ours.ok() && theirs_ok && Result(*ours) != InOurNotation(test.at("result")));
          break;
      }
      left.erase(found);
      continue;
    }
    if (theirs_ok) {
      ++accepted;
      ASSERT_TRUE(ours.ok()) << ours.status();
      EXPECT_EQ(Result(*ours), InOurNotation(test.at("result")));
    } else {
      ++refused;
      EXPECT_FALSE(ours.ok()) << "TensorFlow: " << test.at("error");
    }
  }
  EXPECT_TRUE(left.empty()) << "no such case: " << left.begin()->first;
  EXPECT_GT(accepted, 70);
  EXPECT_GT(refused, 80);
}

}  // namespace
}  // namespace muster::recorded_tensorflow_test
