#include "muster/launch/spec/yaml_tree.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/absl_view.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

constexpr int kDeepestYaml = 64;
constexpr int kMostYamlValues = 100'000;
// The library takes the end of the text for a closing quote if a line ends there; a comment ends no line.
constexpr char kUnclosedQuotesShow[] = "\n#";
constexpr char kTemplateAdvice[] = "; a value that begins with {{ must stand in quotes: \"{{ name }} …\"";

absl::Status YamlMistake(const std::string& name, int line, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(name, ":", line, ": ", what));
}

int YamlLine(const YAML::Mark& mark, int otherwise) { return mark.is_null() ? otherwise : mark.line + 1; }

// Copies the library's nodes. Aliases are written out, which is why size and depth are bounded: a node may contain
// itself.
class YamlCopier {
 public:
  explicit YamlCopier(const std::string& name) : name_(name) {}

  absl::StatusOr<YamlNode> Copy(const YAML::Node& from, int line, int depth) {
    if (++values_ > kMostYamlValues)
      return YamlMistake(name_, line, absl::StrCat("has more than ", kMostYamlValues, " values, aliases written out"));
    if (depth > kDeepestYaml)
      return YamlMistake(name_, line, absl::StrCat("is nested more than ", kDeepestYaml, " deep"));
    YamlNode node{.line = line};
    switch (from.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null:
        break;
      case YAML::NodeType::Scalar:
        node.kind = YamlKind::kScalar;
        node.text = from.Scalar();
        node.quoted = from.Tag() != "?" && !from.Tag().empty();
        break;
      case YAML::NodeType::Sequence:
        RETURN_IF_ERROR(CopyList(from, depth, node));
        break;
      case YAML::NodeType::Map:
        RETURN_IF_ERROR(CopyMap(from, depth, node));
        break;
    }
    return node;
  }

 private:
  absl::Status CopyList(const YAML::Node& from, int depth, YamlNode& to) {
    to.kind = YamlKind::kList;
    for (const YAML::Node& item : from) {
      ASSIGN_OR_RETURN(YamlNode copy, Copy(item, YamlLine(item.Mark(), to.line), depth + 1));
      to.items.push_back(std::move(copy));
    }
    return absl::OkStatus();
  }

  absl::Status CopyMap(const YAML::Node& from, int depth, YamlNode& to) {
    to.kind = YamlKind::kMap;
    for (const auto& entry : from) {
      const int line = YamlLine(entry.first.Mark(), to.line);
      if (!entry.first.IsScalar())
        return YamlMistake(name_, line, absl::StrCat("a key must be a word, not a list or a map", kTemplateAdvice));
      ASSIGN_OR_RETURN(YamlNode copy, Copy(entry.second, line, depth + 1));
      to.keys.push_back(entry.first.Scalar());
      to.items.push_back(std::move(copy));
    }
    return absl::OkStatus();
  }

  const std::string& name_;
  int values_ = 0;
};

// What the library found wrong, with the advice that its most frequent reason here calls for.
absl::Status YamlSyntaxMistake(const std::string& name, std::string_view text, const YAML::Exception& exception) {
  const std::vector<std::string> lines = absl::StrSplit(AbslView(text), '\n');
  const int line = std::min(YamlLine(exception.mark, 1), static_cast<int>(lines.size()));
  if (exception.msg == YAML::ErrorMsg::EOF_IN_SCALAR)
    return YamlMistake(name, line, "is no YAML: a quote that begins in this line or above it is never closed");
  bool has_template = false;
  for (int i : {line - 1, line - 2})  // the mark is where it noticed
    if (i >= 0 && i < static_cast<int>(lines.size()))
      has_template = has_template || absl::StrContains(lines[i], ": {{") || absl::StrContains(lines[i], "- {{");
  return YamlMistake(name, line, absl::StrCat("is no YAML: ", exception.msg, has_template ? kTemplateAdvice : ""));
}

}  // namespace

const YamlNode* YamlNode::Find(std::string_view key) const {
  const auto found = std::find(keys.begin(), keys.end(), key);
  return found == keys.end() ? nullptr : &items[static_cast<size_t>(found - keys.begin())];
}

absl::StatusOr<YamlNode> ParseYaml(std::string_view text, const std::string& name) {
  const size_t nul = text.find('\0');
  if (nul != std::string_view::npos) {
    const auto lines = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(nul), '\n');
    return YamlMistake(name, static_cast<int>(lines) + 1, "is no text: it holds a zero byte");
  }
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(absl::StrCat(AbslView(text), kUnclosedQuotesShow));
    if (documents.size() > 1)
      return YamlMistake(name, YamlLine(documents[1].Mark(), 1), "begins a second document; accepted is one");
    if (documents.empty()) return YamlNode();
    return YamlCopier(name).Copy(documents[0], YamlLine(documents[0].Mark(), 1), 0);
  } catch (const YAML::Exception& exception) {
    return YamlSyntaxMistake(name, text, exception);
  }
}

}  // namespace muster
