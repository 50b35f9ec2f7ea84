#include "muster/launch/spec/schema.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "muster/launch/spec/experiment_file.h"
#include "muster/launch/spec/file_template.h"
#include "muster/launch/spec/key_check.h"
#include "muster/launch/spec/yaml_tree.h"
#include "muster/launch/testing/tensorflow_file.h"

namespace muster::schema_test {
namespace {

using ::testing::Contains;
using Json = nlohmann::json;

// Returns what a validator sees of the YAML.
Json JsonOf(const YamlNode& node) {
  switch (node.kind) {
    case YamlKind::kEmpty:
      return nullptr;
    case YamlKind::kList: {
      Json list = Json::array();
      for (const YamlNode& item : node.items) list.push_back(JsonOf(item));
      return list;
    }
    case YamlKind::kMap: {
      Json map = Json::object();
      for (size_t i = 0; i < node.keys.size(); ++i) map[node.keys[i]] = JsonOf(node.items[i]);
      return map;
    }
    case YamlKind::kScalar:
      break;
  }
  if (const auto truth = TruthOf(node)) return *truth;
  if (const auto whole = WholeOf(node)) return *whole;
  if (const auto number = NumberOf(node)) return *number;
  return node.text;
}

bool HasType(const Json& value, const std::string& type) {
  return (type == "object" && value.is_object()) || (type == "array" && value.is_array()) ||
         (type == "string" && value.is_string()) || (type == "number" && value.is_number()) ||
         (type == "integer" && value.is_number_integer()) || (type == "boolean" && value.is_boolean());
}

// A validator for the keywords that this schema uses; an unknown keyword is a failure.
class Validator {
 public:
  explicit Validator(const Json& root) : root_(root) {}

  bool Accepts(const Json& value) const { return Accepts(root_, value); }

 private:
  bool Accepts(const Json& schema, const Json& value) const {
    for (const auto& [word, rule] : schema.items())
      if (!Accepts(schema, word, rule, value)) return false;
    return true;
  }

  bool Accepts(const Json& schema, const std::string& word, const Json& rule, const Json& value) const {
    static const std::set<std::string> silent = {"$schema", "title", "$defs", "description", "additionalProperties"};
    if (silent.contains(word)) return true;
    if (word == "$ref") return Accepts(root_.at(Json::json_pointer(rule.get<std::string>().substr(1))), value);
    if (word == "anyOf")
      return std::any_of(rule.begin(), rule.end(), [&](const Json& form) { return Accepts(form, value); });
    if (word == "enum") return std::find(rule.begin(), rule.end(), value) != rule.end();
    if (word == "type") {
      if (rule.is_string()) return HasType(value, rule);
      return std::any_of(rule.begin(), rule.end(), [&](const Json& type) { return HasType(value, type); });
    }
    if (word == "minLength") return !value.is_string() || value.get<std::string>().size() >= rule;
    if (word == "pattern")
      return !value.is_string() || std::regex_search(value.get<std::string>(), std::regex(rule.get<std::string>()));
    if (word == "minimum") return !value.is_number() || value >= rule;
    if (word == "maximum") return !value.is_number() || value <= rule;
    if (word == "exclusiveMinimum") return !value.is_number() || value > rule;
    if (word == "minItems") return !value.is_array() || value.size() >= rule;
    if (word == "items")
      return !value.is_array() ||
             std::all_of(value.begin(), value.end(), [&](const Json& item) { return Accepts(rule, item); });
    if (word == "required")
      return !value.is_object() ||
             std::all_of(rule.begin(), rule.end(), [&](const Json& name) { return value.contains(name); });
    if (word == "properties") return AcceptsProperties(schema, rule, value);
    if (word == "propertyNames") return AcceptsNames(schema, rule, value);
    ADD_FAILURE() << "a word of the schema that isn't checked here: " << word;
    return false;
  }

  bool AcceptsProperties(const Json& schema, const Json& properties, const Json& value) const {
    if (!value.is_object()) return true;
    EXPECT_EQ(schema.at("additionalProperties"), false);
    for (const auto& [name, property] : value.items())
      if (!properties.contains(name) || !Accepts(properties.at(name), property)) return false;
    return true;
  }

  bool AcceptsNames(const Json& schema, const Json& names, const Json& value) const {
    if (!value.is_object()) return true;
    for (const auto& [name, property] : value.items())
      if (!Accepts(names, name) || !Accepts(schema.at("additionalProperties"), property)) return false;
    return true;
  }

  const Json root_;
};

bool SchemaAccepts(const std::string& text) {
  static const Validator validator(Json::parse(ExperimentFileJsonSchema()));
  return validator.Accepts(JsonOf(ParseYaml(text, "muster.yml").value()));
}

std::string WithTrain(const std::string& train) { return absl::StrCat("project: p\ntrain:\n  run: x\n  ", train); }

TEST(ExperimentFileJsonSchema, IsOneAndIsClosedEverywhere) {
  const Json schema = Json::parse(ExperimentFileJsonSchema());
  EXPECT_EQ(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
  EXPECT_EQ(schema["additionalProperties"], false);
  EXPECT_THAT(schema["required"], Contains("project"));
  for (const auto& [name, section] : schema["$defs"].items()) {
    EXPECT_EQ(section["additionalProperties"], false) << name;
    for (const auto& [key, property] : section["properties"].items())
      EXPECT_FALSE(property["description"].get<std::string>().empty()) << name << "." << key;
  }
}

TEST(ExperimentFileJsonSchema, AcceptsATensorflowFile) { EXPECT_TRUE(SchemaAccepts(kTensorflowFile)); }

TEST(ExperimentFileJsonSchema, AcceptsTheFilesOfInit) {
  for (const Framework framework : {Framework::kMuster, Framework::kTensorflow, Framework::kPytorch, Framework::kAny})
    EXPECT_TRUE(SchemaAccepts(ExperimentFileTemplate(framework, "p"))) << Name(framework);
}

// The schema and the file checker must agree on these.
TEST(ExperimentFileJsonSchema, AcceptsWhatFilesMaySay) {
  for (const char* train :
       {"install: [a, b]", "framework: muster", "env: {A: 1}", "env: [A=1]", "concurrency: 3", "log_limit: 10MB",
        "resources: {cpus: 0.5, mem: 1.5GB, gpus: 0}",
        "parameters: {a: 1, b-c: [x, 2], d: {range: {min: 1, max: 2, step: 1}}}",
        "volumes: [/a, '/b:/c:rw', {host: /d, writable: true}]", "restart: {policy: always, limit: 0, backoff: 1.5s}",
        "restart: {backoff: 2}", "torchrun: {workers: 2, processes: 2}", "output: /x", "image: a/b:c"}) {
    EXPECT_TRUE(ParseExperimentFile(WithTrain(train), "f").ok()) << train;
    EXPECT_TRUE(SchemaAccepts(WithTrain(train))) << train;
  }
}

TEST(ExperimentFileJsonSchema, RefusesWhatFilesMayNotSay) {
  for (const char* train : {"rum: x",
                            "framework: tensorflwo",
                            "install: []",
                            "install: {a: b}",
                            "env: [A]",
                            "env: {a-b: 1}",
                            "concurrency: 0",
                            "concurrency: '3'",
                            "log_limit: many",
                            "resources: {cpus: 0}",
                            "resources: {mem: lots}",
                            "resources: {gpus: -1}",
                            "resources: {memory: 1}",
                            "parameters: {2nd: 1}",
                            "parameters: {a: []}",
                            "parameters: {a: {}}",
                            "parameters: {a: {range: {min: 1, max: 2, step: 0}}}",
                            "parameters: {a: ~}",
                            "volumes: [data]",
                            "volumes: [{path: /a}]",
                            "restart: never",
                            "restart: {policy: sometimes}",
                            "restart: {backoff: soon}",
                            "torchrun: {workers: 0}",
                            "output: x",
                            "image: {name: x}"}) {
    EXPECT_FALSE(ParseExperimentFile(WithTrain(train), "f").ok()) << train;
    EXPECT_FALSE(SchemaAccepts(WithTrain(train))) << train;
  }
  EXPECT_FALSE(SchemaAccepts("project: p\n"));
  EXPECT_FALSE(SchemaAccepts("project: a b\ntrain: {run: x}\n"));
  EXPECT_FALSE(SchemaAccepts("project: p\ntrain: {run: x}\ndeploy: {}\n"));
  EXPECT_FALSE(SchemaAccepts("project: p\ntrain: {run: x, framework: muster, muster: {distributed: {worker: 0}}}\n"));
}

}  // namespace
}  // namespace muster::schema_test
