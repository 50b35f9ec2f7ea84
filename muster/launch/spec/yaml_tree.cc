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
#include "muster/base/text/one_line.h"

namespace muster {
namespace {

constexpr size_t kDeepestYaml = 64;
constexpr int kMostYamlValues = 100'000;
constexpr size_t kLongestShownLine = 160;
// The library takes the end of the text for a closing quote if a line ends there, but a comment doesn't end a line.
constexpr char kUnclosedQuotesShow[] = "\n#";
constexpr char kTemplateAdvice[] = "; a value that begins with {{ must stand in quotes: \"{{ name }} …\"";

absl::Status YamlMistake(const std::string& name, int line, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(name, ":", line, ": ", what));
}

std::vector<std::string_view> LinesOfYaml(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    begin = end + 1;
  }
  return lines;
}

int YamlLine(const YAML::Mark& mark, int otherwise) { return mark.is_null() ? otherwise : mark.line + 1; }

// Returns '|' or '>' if a block begins at the mark, maybe behind an anchor and a tag; otherwise 0.
char BlockAt(const std::vector<std::string_view>& lines, const YAML::Mark& mark) {
  if (mark.is_null() || mark.line >= static_cast<int>(lines.size())) return 0;
  const absl::string_view line = AbslView(lines[mark.line]);
  const auto at = std::min(line.size(), static_cast<size_t>(mark.column));
  for (const absl::string_view word : absl::StrSplit(line.substr(at), ' ', absl::SkipEmpty())) {
    if (word[0] == '|' || word[0] == '>') return word[0];
    if (word[0] != '&' && word[0] != '!') break;
  }
  return 0;
}

// Builds the tree from the parser's events. (The library's own builder, behind YAML::LoadAll, misses duplicate keys,
// and never ends for a text that begins with a comma.) Size and depth are bounded because aliases are expanded.
// status() has the reason for a refusal; an exception stops the parser.
class YamlTreeBuilder : public YAML::EventHandler {
 public:
  YamlTreeBuilder(const std::string& name, const std::vector<std::string_view>& lines) : name_(name), lines_(lines) {}

  void OnDocumentStart(const YAML::Mark& mark) override { line_ = YamlLine(mark, line_); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { Add(NodeAt(mark), anchor, 1); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode node = NodeAt(mark);
    node.kind = YamlKind::kScalar;
    node.text = value;
    node.quoted = tag != "?" && !tag.empty();
    if (node.quoted) node.block = BlockAt(lines_, mark);
    if (node.block != 0) node.block_line = node.line;
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
  const std::vector<std::string_view>& lines_;
  absl::Status status_;
  YamlNode root_;
  int line_ = 1;
  int values_ = 0;
  std::vector<Unfinished> unfinished_;  // outermost first
  std::map<YAML::anchor_t, Anchored> anchored_;
};

// Returns two lines below a message: the line of the file, and a caret below its column, counted from 0. Returns "" if
// that wouldn't fit on a screen, or has control characters.
std::string WithCaret(std::string_view line, size_t column) {
  if (line.empty() || column > line.size() || line.size() > kLongestShownLine) return "";
  std::string shown(line);
  std::replace(shown.begin(), shown.end(), '\t', ' ');
  if (OneLine(shown) != shown) return "";
  return absl::StrCat("\n  ", shown, "\n  ", std::string(column, ' '), "^");
}

// Returns whether the library stumbled over the line's indentation: over its first word, or over the colon of a key
// where the line above has a value already, so that a deeper line can't begin a section.
bool IsWronglyIndented(std::string_view line, size_t text_at, const YAML::Exception& exception) {
  const auto at = static_cast<size_t>(exception.mark.column);
  if (exception.msg == YAML::ErrorMsg::END_OF_MAP || exception.msg == YAML::ErrorMsg::END_OF_SEQ) return at == text_at;
  if (exception.msg != YAML::ErrorMsg::MAP_VALUE || text_at == 0 || at > line.size() || at < text_at) return false;
  return line.substr(text_at, at - text_at).find_first_of(":\"'{[") == std::string_view::npos;
}

// Reports what the library found wrong, with advice for the most frequent reasons.
absl::Status YamlSyntaxMistake(const std::string& name, const std::vector<std::string_view>& lines,
                               const YAML::Exception& exception) {
  const int line = std::min(YamlLine(exception.mark, 1), static_cast<int>(lines.size()));
  const std::string_view text = lines[line - 1];
  const size_t text_at = std::min(text.find_first_not_of(" \t"), text.size());
  const bool has_tab = text.substr(0, text_at).find('\t') != std::string_view::npos;
  constexpr char kByBlanks[] = "; indent lines by blanks, not by tabs";
  if (exception.msg == YAML::ErrorMsg::EOF_IN_SCALAR)
    return YamlMistake(name, line, "isn't YAML: a quote that begins in this line or above it is never closed");
  bool has_template = false;
  for (int i : {line - 1, line - 2})  // the parser notices at the mark, maybe a line later
    if (i >= 0)
      has_template = has_template || absl::StrContains(AbslView(lines[i]), ": {{") ||
                     absl::StrContains(AbslView(lines[i]), "- {{");
  if (!has_template && IsWronglyIndented(text, text_at, exception))
    return YamlMistake(name, line,
                       absl::StrCat("isn't YAML: the line's indentation fits none of the lines above; accepted: all ",
                                    "keys of a section, and all items of a list, begin in the same column",
                                    has_tab ? kByBlanks : "", WithCaret(text, text_at)));
  const bool has_colon = exception.msg == YAML::ErrorMsg::MAP_VALUE;
  const size_t column = exception.mark.is_null() ? text_at : static_cast<size_t>(exception.mark.column);
  return YamlMistake(name, line,
                     absl::StrCat("isn't YAML: ", exception.msg, has_template ? kTemplateAdvice : "",
                                  has_colon ? "; put text with ': ' in it between quotes" : "",
                                  has_tab ? kByBlanks : "", WithCaret(text, column)));
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
  const std::vector<std::string_view> lines = LinesOfYaml(text);
  YamlTreeBuilder tree(name, lines);
  YamlTreeBuilder rest(name, lines);
  try {
    YAML::Parser parser(stream);
    parser.HandleNextDocument(tree);
    if (parser.HandleNextDocument(rest))
      return YamlMistake(name, rest.line(),
                         "is after the end of the document: a second document, or a comma or bracket too many");
    return tree.root();
  } catch (const YAML::Exception& exception) {
    for (const YamlTreeBuilder* builder : {&tree, &rest}) RETURN_IF_ERROR(builder->status());
    return YamlSyntaxMistake(name, lines, exception);
  }
}

}  // namespace muster
