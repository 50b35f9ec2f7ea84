#include "muster/launch/manifest/yaml_text.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace muster {
namespace {

// Words that some version of YAML reads as a truth value or as nothing.
constexpr absl::string_view kYamlWords[] = {"true", "false", "yes", "no", "on", "off", "y", "n", "null"};

bool IsPrintable(char c) { return c >= ' ' && c <= '~'; }

// Whether the text means itself without quotes, in every version of YAML.
bool IsPlainYaml(const std::string& text) {
  if (text.empty() || (!absl::ascii_isalpha(text[0]) && text[0] != '/') || text.back() == ':') return false;
  const std::string lower = absl::AsciiStrToLower(text);
  if (std::find(std::begin(kYamlWords), std::end(kYamlWords), lower) != std::end(kYamlWords)) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("_./:@=,-", c);
  });
}

bool IsBlockOfYaml(const std::string& text) {
  if (!absl::StrContains(text, '\n') || text[0] == ' ' || text[0] == '\n' || absl::EndsWith(text, "\n\n")) return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return IsPrintable(c) || c == '\n'; });
}

// `indent`: of the lines below the one in which the value begins.
std::string YamlScalar(const nlohmann::ordered_json& value, size_t indent) {
  if (value.is_object()) return "{}";
  if (value.is_array()) return "[]";
  if (!value.is_string()) return value.dump();
  const std::string& text = value.get_ref<const std::string&>();
  if (IsPlainYaml(text)) return text;
  if (IsBlockOfYaml(text)) {
    const bool ends_a_line = text.back() == '\n';
    std::string block = ends_a_line ? "|" : "|-";
    for (const absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n'))
      absl::StrAppend(&block, "\n", line.empty() ? "" : std::string(indent, ' '), line);
    return block;
  }
  const bool is_quotable = !text.empty() && std::all_of(text.begin(), text.end(), IsPrintable);
  if (is_quotable && (absl::StrContains(text, '"') || absl::StrContains(text, '\\')))
    return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "''"}}), "'");
  // JSON's strings are YAML's.
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void AppendYaml(const nlohmann::ordered_json& value, size_t indent, std::string& out) {
  const std::string margin(indent, ' ');
  if (value.is_array()) {
    for (const nlohmann::ordered_json& item : value) {
      std::string text;
      if (item.is_structured() && !item.empty())
        AppendYaml(item, indent + 2, text);
      else
        text = absl::StrCat(margin, "  ", YamlScalar(item, indent + 2), "\n");
      out.append(text.replace(indent, 1, "-"));
    }
    return;
  }
  for (const auto& [key, item] : value.items()) {
    absl::StrAppend(&out, margin, YamlScalar(key, indent), ":");
    if (item.is_structured() && !item.empty()) {
      out.append("\n");
      AppendYaml(item, item.is_array() ? indent : indent + 2, out);
    } else {
      absl::StrAppend(&out, " ", YamlScalar(item, indent + 2), "\n");
    }
  }
}

}  // namespace

std::string YamlText(const nlohmann::ordered_json& tree) {
  if (!tree.is_structured() || tree.empty()) return absl::StrCat(YamlScalar(tree, 2), "\n");
  std::string text;
  AppendYaml(tree, 0, text);
  return text;
}

}  // namespace muster
