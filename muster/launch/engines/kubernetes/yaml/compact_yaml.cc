#include "muster/launch/engines/kubernetes/yaml/compact_yaml.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace muster {
namespace {

constexpr size_t kWidest = 110;  // of a map on one line, in columns

std::string QuotedJson(const OrderedJson& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/true, OrderedJson::error_handler_t::replace);
}

// Words that YAML 1.1 takes for something else.
bool IsReserved(const std::string& text) {
  constexpr std::string_view kWords[] = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"};
  const std::string lower = absl::AsciiStrToLower(text);
  return std::find(std::begin(kWords), std::end(kWords), lower) != std::end(kWords);
}

std::string TextScalar(const std::string& text) {
  const auto is_plain = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("_./-", std::string(1, c));
  };
  const bool begins = !text.empty() && (absl::ascii_isalpha(static_cast<unsigned char>(text[0])) || text[0] == '/');
  if (begins && std::all_of(text.begin(), text.end(), is_plain) && !IsReserved(text)) return text;
  return QuotedJson(text);
}

std::string Scalar(const OrderedJson& value) {
  return value.is_string() ? TextScalar(value.get<std::string>()) : QuotedJson(value);
}

bool IsBlockText(const OrderedJson& value) {
  if (!value.is_string()) return false;
  const std::string text = value.get<std::string>();
  if (text.empty() || text.back() != '\n' || absl::StrContains(" \n", text.substr(0, 1)) ||
      absl::EndsWith(text, "\n\n"))
    return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return c == '\n' || (c >= ' ' && c < 0x7f); });
}

// "" if it has something in it that needs lines of its own.
std::string OnOneLine(const OrderedJson& value) {
  if (value.empty() && value.is_structured()) return value.is_object() ? "{}" : "[]";
  if (!value.is_structured()) return IsBlockText(value) ? "" : Scalar(value);
  std::vector<std::string> parts;
  for (const auto& [key, item] : value.items()) {
    if (item.is_structured() && !item.empty()) return "";
    const std::string part = OnOneLine(item);
    if (part.empty()) return "";
    parts.push_back(value.is_object() ? absl::StrCat(TextScalar(key), ": ", part) : part);
  }
  const std::string inside = absl::StrJoin(parts, ", ");
  return value.is_object() ? absl::StrCat("{", inside, "}") : absl::StrCat("[", inside, "]");
}

void Append(const OrderedJson& value, size_t indent, std::string& text);

// What stands behind "key:" or "-", up to the end of its last line.
void AppendBehind(const OrderedJson& value, size_t indent, std::string& text) {
  if (IsBlockText(value)) {
    text += " |\n";
    const std::string whole = value.get<std::string>();
    const std::vector<std::string> lines = absl::StrSplit(absl::string_view(whole).substr(0, whole.size() - 1), '\n');
    for (const std::string& line : lines)
      absl::StrAppend(&text, line.empty() ? "" : std::string(indent, ' '), line, "\n");
    return;
  }
  const std::string line = OnOneLine(value);
  if (!line.empty() && (!value.is_structured() || indent + line.size() <= kWidest)) {
    absl::StrAppend(&text, " ", line, "\n");
    return;
  }
  text += '\n';
  Append(value, indent, text);
}

void Append(const OrderedJson& value, size_t indent, std::string& text) {
  const std::string space(indent, ' ');
  for (const auto& [key, item] : value.items()) {
    if (value.is_object()) {
      absl::StrAppend(&text, space, TextScalar(key), ":");
      AppendBehind(item, indent + 2, text);
      continue;
    }
    std::string inside;
    AppendBehind(item, indent + 2, inside);
    // A map's first key follows the dash.
    if (absl::StartsWith(inside, "\n")) inside = absl::StrCat(" ", inside.substr(indent + 3));
    absl::StrAppend(&text, space, "-", inside);
  }
}

}  // namespace

std::string CompactYaml(const OrderedJson& value) {
  std::string text;
  if (value.is_structured() && !value.empty())
    Append(value, 0, text);
  else
    text = absl::StrCat(OnOneLine(value), "\n");
  return text;
}

}  // namespace muster
