#include "muster/launch/spec/yaml_tree.h"

#include <yaml-cpp/anchor.h>
#include <yaml-cpp/emitterstyle.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/absl_view.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

constexpr size_t kDeepestYaml = 64;
constexpr int kMostYamlValues = 100'000;
// The library takes the end of the text for a closing quote if a line ends there, but a comment doesn't end a line.
constexpr char kUnclosedQuotesShow[] = "\n#";
constexpr char kTemplateAdvice[] = "; a value that begins with {{ must stand in quotes: \"{{ name }} …\"";

absl::Status YamlMistake(const std::string& name, int line, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(name, ":", line, ": ", what));
}

int YamlLine(const YAML::Mark& mark, int otherwise) { return mark.is_null() ? otherwise : mark.line + 1; }

// Builds the tree from the parser's events. (The library's own builder, behind YAML::LoadAll, misses duplicate keys,
// and never ends for a text that begins with a comma.) Size and depth are bounded because aliases are expanded.
// status() has the reason for a refusal; an exception stops the parser.
class YamlTreeBuilder : public YAML::EventHandler {
 public:
  explicit YamlTreeBuilder(const std::string& name) : name_(name) {}

  void OnDocumentStart(const YAML::Mark& mark) override { line_ = YamlLine(mark, line_); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { Add(NodeAt(mark), anchor, 1); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode node = NodeAt(mark);
    node.kind = YamlKind::kScalar;
    node.text = value;
    node.quoted = tag != "?" && !tag.empty();
    Add(std::move(node), anchor, 1);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto meant = anchored_.find(anchor);
    const int line = NodeAt(mark).line;
    if (meant == anchored_.end()) Refuse("is an alias of a value that contains it");
    YamlNode node = meant->second.node;
    node.line = line;
    Add(std::move(node), YAML::NullAnchor, meant->second.values);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    Open(mark, YamlKind::kList, anchor);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    Open(mark, YamlKind::kMap, anchor);
  }
  void OnMapEnd() override { Close(); }

  const YamlNode& root() const { return root_; }
  int line() const { return line_; }  // of the last event
  const absl::Status& status() const { return status_; }

 private:
  // A list or map whose end hasn't come yet.
  struct Unfinished {
    YamlNode node;
    YAML::anchor_t anchor = YAML::NullAnchor;
    int values_before = 0;
    std::optional<std::string> key;  // of a map, if its value comes next
    int key_line = 0;
  };
  struct Anchored {
    YamlNode node;
    int values = 0;  // it and all in it
  };

  [[noreturn]] void Refuse(absl::string_view what) {
    status_ = YamlMistake(name_, line_, what);
    throw YAML::ParserException(YAML::Mark::null_mark(), "refused");
  }

  YamlNode NodeAt(const YAML::Mark& mark) {
    line_ = YamlLine(mark, line_);
    return {.line = line_};
  }

  void Open(const YAML::Mark& mark, YamlKind kind, YAML::anchor_t anchor) {
    YamlNode node = NodeAt(mark);
    node.kind = kind;
    if (unfinished_.size() >= kDeepestYaml) Refuse(absl::StrCat("is nested more than ", kDeepestYaml, " deep"));
    unfinished_.push_back({.node = std::move(node), .anchor = anchor, .values_before = values_});
  }

  void Close() {
    Unfinished finished = std::move(unfinished_.back());
    unfinished_.pop_back();
    const int values = values_ - finished.values_before + 1;
    values_ = finished.values_before;
    Add(std::move(finished.node), finished.anchor, values);
  }

  // `values`: the number of values in the node, itself included.
  void Add(YamlNode node, YAML::anchor_t anchor, int values) {
    values_ += values;
    if (values_ > kMostYamlValues)
      Refuse(absl::StrCat("has more than ", kMostYamlValues, " values, aliases written out"));
    if (anchor != YAML::NullAnchor) anchored_[anchor] = {node, values};
    if (unfinished_.empty()) {
      root_ = std::move(node);
      return;
    }
    Unfinished& parent = unfinished_.back();
    if (parent.node.kind == YamlKind::kList) {
      parent.node.items.push_back(std::move(node));
    } else if (parent.key) {
      node.line = parent.key_line;
      parent.node.keys.push_back(*std::exchange(parent.key, std::nullopt));
      parent.node.items.push_back(std::move(node));
    } else {
      line_ = node.line;
      if (node.kind != YamlKind::kScalar)
        Refuse(absl::StrCat("a key must be a word, not a list or a map", kTemplateAdvice));
      parent.key_line = node.line;
      parent.key = std::move(node.text);
    }
  }

  const std::string& name_;
  absl::Status status_;
  YamlNode root_;
  int line_ = 1;
  int values_ = 0;
  std::vector<Unfinished> unfinished_;  // outermost first
  std::map<YAML::anchor_t, Anchored> anchored_;
};

// Reports what the library found wrong, with advice for the most frequent reason.
absl::Status YamlSyntaxMistake(const std::string& name, std::string_view text, const YAML::Exception& exception) {
  const std::vector<std::string> lines = absl::StrSplit(AbslView(text), '\n');
  const int line = std::min(YamlLine(exception.mark, 1), static_cast<int>(lines.size()));
  if (exception.msg == YAML::ErrorMsg::EOF_IN_SCALAR)
    return YamlMistake(name, line, "isn't YAML: a quote that begins in this line or above it is never closed");
  bool has_template = false;
  for (int i : {line - 1, line - 2})  // the parser notices at the mark, maybe a line later
    if (i >= 0 && i < static_cast<int>(lines.size()))
      has_template = has_template || absl::StrContains(lines[i], ": {{") || absl::StrContains(lines[i], "- {{");
  const bool has_colon = exception.msg == YAML::ErrorMsg::MAP_VALUE;
  const size_t text_at = lines[line - 1].find_first_not_of(" \t");
  const bool has_tab = absl::StrContains(lines[line - 1].substr(0, text_at), '\t');
  return YamlMistake(name, line,
                     absl::StrCat("isn't YAML: ", exception.msg, has_template ? kTemplateAdvice : "",
                                  has_colon ? "; put text with ': ' in it between quotes" : "",
                                  has_tab ? "; indent lines by blanks, not by tabs" : ""));
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
    return YamlMistake(name, static_cast<int>(lines) + 1, "isn't text: it contains a zero byte");
  }
  std::istringstream stream(absl::StrCat(AbslView(text), kUnclosedQuotesShow));
  YamlTreeBuilder tree(name);
  YamlTreeBuilder rest(name);
  try {
    YAML::Parser parser(stream);
    parser.HandleNextDocument(tree);
    if (parser.HandleNextDocument(rest))
      return YamlMistake(name, rest.line(),
                         "is after the end of the document: a second document, or a comma or bracket too many");
    return tree.root();
  } catch (const YAML::Exception& exception) {
    for (const YamlTreeBuilder* builder : {&tree, &rest}) RETURN_IF_ERROR(builder->status());
    return YamlSyntaxMistake(name, text, exception);
  }
}

}  // namespace muster
