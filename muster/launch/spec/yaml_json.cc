#include "muster/launch/spec/yaml_json.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "muster/launch/spec/key_check.h"

namespace muster {
namespace {

using YamlJson = nlohmann::ordered_json;

YamlJson ValueOfNode(const YamlNode& node) {
  if (node.kind == YamlKind::kEmpty) return nullptr;
  if (node.kind == YamlKind::kScalar) {
    if (const std::optional<bool> truth = TruthOf(node); truth.has_value()) return *truth;
    if (const std::optional<int64_t> whole = WholeOf(node); whole.has_value()) return *whole;
    if (const std::optional<double> number = NumberOf(node); number.has_value()) return *number;
    return node.text;
  }
  YamlJson value = node.kind == YamlKind::kMap ? YamlJson::object() : YamlJson::array();
  for (size_t i = 0; i < node.items.size(); ++i) {
    if (node.kind == YamlKind::kMap)
      value[node.keys[i]] = ValueOfNode(node.items[i]);
    else
      value.push_back(ValueOfNode(node.items[i]));
  }
  return value;
}

}  // namespace

std::string JsonText(const YamlNode& node) {
  return ValueOfNode(node).dump(-1, ' ', /*ensure_ascii=*/true, YamlJson::error_handler_t::replace);
}

}  // namespace muster
