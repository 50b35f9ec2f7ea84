#include "muster/launch/spec/schema.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/launch/spec/key_table.h"
#include "muster/launch/task/resources.h"

namespace muster {
namespace {

nlohmann::ordered_json SchemaOfForms(const std::vector<KeyForm>& forms);

nlohmann::ordered_json SchemaOfForm(const KeyForm& form) {
  const nlohmann::ordered_json scalar = {"string", "number", "boolean"};
  switch (form.kind) {
    case FormKind::kText:
      return {{"type", scalar}, {"minLength", 1}};
    case FormKind::kAnyText:
      return {{"type", scalar}};
    case FormKind::kAnything:
      return nlohmann::ordered_json::object();
    case FormKind::kNothing:
      return {{"type", "null"}};
    case FormKind::kPattern:
      return {{"type", scalar}, {"pattern", form.pattern}};
    case FormKind::kWord:
      return {{"enum", form.words}};
    case FormKind::kWhole:
      return {{"type", "integer"}, {"minimum", form.least}, {"maximum", form.most}};
    case FormKind::kPositive:
      return {{"type", "number"}, {"exclusiveMinimum", 0}};
    case FormKind::kNumber:
      return {{"type", "number"}};
    case FormKind::kTruth:
      return {{"type", "boolean"}};
    case FormKind::kMemory:
      return {{"type", {"number", "string"}}, {"exclusiveMinimum", 0}, {"pattern", kMemoryPattern}};
    case FormKind::kDuration:
      return {
          {"type", {"number", "string"}}, {"minimum", 0}, {"pattern", "^(0|([0-9]+(\\.[0-9]*)?(ns|us|ms|s|m|h))+)$"}};
    case FormKind::kList:
      return {{"type", "array"}, {"items", SchemaOfForms(form.of)}, {"minItems", 1}};
    case FormKind::kNames:
      return {{"type", "object"},
              {"propertyNames", {{"pattern", form.pattern}}},
              {"additionalProperties", SchemaOfForms(form.of)}};
    case FormKind::kSection:
      return {{"$ref", absl::StrCat("#/$defs/", form.section)}};
  }
  return nlohmann::ordered_json::object();
}

nlohmann::ordered_json SchemaOfForms(const std::vector<KeyForm>& forms) {
  if (forms.size() == 1) return SchemaOfForm(forms[0]);
  nlohmann::ordered_json any = nlohmann::ordered_json::array();
  for (const KeyForm& form : forms) any.push_back(SchemaOfForm(form));
  return {{"anyOf", any}};
}

nlohmann::ordered_json SchemaOfSection(const KeySection& section) {
  nlohmann::ordered_json properties = nlohmann::ordered_json::object();
  nlohmann::ordered_json required = nlohmann::ordered_json::array();
  for (const KeyRow& row : section.keys) {
    nlohmann::ordered_json property = SchemaOfForms(row.forms);
    if (row.required()) required.push_back(row.name);
    const bool has_default = !row.required() && !row.standard.empty();
    property["description"] = absl::StrCat(row.meaning, "; accepted: ", row.Accepted(),
                                           has_default ? "; default: " : "", has_default ? row.standard : "");
    properties[row.name] = property;
  }
  nlohmann::ordered_json schema = {{"type", "object"}, {"additionalProperties", false}, {"properties", properties}};
  if (!required.empty()) schema["required"] = required;
  return schema;
}

}  // namespace

std::string ExperimentFileJsonSchema() {
  nlohmann::ordered_json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                                   {"title", "muster.yml"}};
  schema.update(SchemaOfSection(ExperimentKeySection(kFileSection)));
  for (const KeySection& section : ExperimentKeys())
    if (section.name != kFileSection) schema["$defs"][section.name] = SchemaOfSection(section);
  return schema.dump(2) + "\n";
}

}  // namespace muster
