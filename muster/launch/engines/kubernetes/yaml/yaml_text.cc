#include "muster/launch/engines/kubernetes/yaml/yaml_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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

// JSON's strings are YAML's, but for characters that YAML has as escapes only, or that end a line in YAML 1.1.
std::string QuotedYaml(const OrderedJson& text) {
  std::vector<std::pair<std::string, std::string>> escapes = {
      {"\x7f", "\\x7f"}, {"\xe2\x80\xa8", "\\u2028"}, {"\xe2\x80\xa9", "\\u2029"}, {"\xef\xbb\xbf", "\\ufeff"}};
  for (int control = 0x80; control < 0xa0; ++control)
    escapes.emplace_back(std::string("\xc2") + static_cast<char>(control), absl::StrFormat("\\x%02x", control));
  return absl::StrReplaceAll(text.dump(-1, ' ', /*ensure_ascii=*/false, OrderedJson::error_handler_t::replace),
                             escapes);
}

// `indent`: of the lines below the one in which the value begins.
std::string YamlScalar(const OrderedJson& value, size_t indent) {
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
  return QuotedYaml(value);
}

void AppendYaml(const OrderedJson& value, size_t indent, std::string& out) {
  const std::string margin(indent, ' ');
  if (value.is_array()) {
    for (const OrderedJson& item : value) {
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

std::string YamlText(const OrderedJson& tree) {
  if (!tree.is_structured() || tree.empty()) return absl::StrCat(YamlScalar(tree, 2), "\n");
  std::string text;
  AppendYaml(tree, 0, text);
  return text;
}

}  // namespace muster
