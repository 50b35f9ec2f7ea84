#include "muster/launch/system/shell_text.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "muster/base/absl_view.h"

namespace muster {
namespace {

// Stands for a character that means nothing to the shell.
constexpr char kMeaningless = '\1';
// Stands for the second $ of $$.
constexpr char kProcessNumber = '\2';

constexpr std::array<std::string_view, 16> kShellGrammar = {"if",    "then", "else",     "elif",  "fi", "do",
                                                            "done",  "case", "esac",     "for",   "in", "while",
                                                            "until", "time", "function", "select"};

bool SeparatesWords(char c) {
  constexpr std::string_view kBetweenWords = " \t\n;&|()<>";
  return kBetweenWords.find(c) != std::string_view::npos;
}

std::string Reference(std::string_view variable) { return absl::StrCat("${", AbslView(variable), "}"); }

}  // namespace

bool IsHarmlessInShell(std::string_view value) {
  constexpr std::string_view kHarmless = "_-+.,:/@";
  const bool characters = !value.empty() && std::all_of(value.begin(), value.end(), [kHarmless](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || kHarmless.find(c) != std::string_view::npos;
  });
  return characters && std::find(kShellGrammar.begin(), kShellGrammar.end(), value) == kShellGrammar.end();
}

bool ShellText::Within(Open open) const { return std::find(open_.begin(), open_.end(), open) != open_.end(); }

void ShellText::Append(std::string_view text) {
  for (const char c : text) {
    Follow(c);
    text_ += c;
    if (c == '\n') ++line_;
  }
}

std::string ShellText::Refusal(std::string_view value) const {
  if (comment_) return "";
  if (escaped_) return "directly after a backslash; accepted: without the backslash";
  if (delimiter_ != Delimiter::kNone) return "in the delimiter of a here-document (<<); accepted: a fixed word there";
  const bool harmless = IsHarmlessInShell(value);
  if (In(Open::kRawDocument))
    return harmless && document_.delimiter.find(value) == std::string::npos
               ? ""
               : absl::StrCat("in a here-document whose delimiter is in quotes; accepted: <<", document_.delimiter,
                              " without quotes (then write \\$ for a $ that is text)");
  if (In(Open::kSingleQuotes)) return lost_.empty() || harmless ? "" : lost_;
  if (previous_ == '$') return "directly after a $; accepted: without the $";
  const bool digits = value.find_first_not_of("0123456789") == std::string_view::npos;
  if (harmless && (digits || !Within(Open::kArithmetic))) return "";
  if (Within(Open::kBackquotes)) return "in backquotes; accepted: $( ) instead";
  if (Within(Open::kArithmetic)) return "in arithmetic, (( )); accepted: a whole number without a sign";
  if (Within(Open::kBraces)) return "in ${ }; accepted: assign it to a variable before, and use that";
  return lost_;
}

absl::Status ShellText::AppendValue(std::string_view value, std::string_view variable) {
  if (const std::string refusal = Refusal(value); !refusal.empty()) return absl::InvalidArgumentError(refusal);
  // In a here-document even a harmless value could be the line that ends it.
  if (IsHarmlessInShell(value) && !In(Open::kDocument)) {
    absl::StrAppend(&text_, AbslView(value));
  } else if (comment_ || In(Open::kDoubleQuotes) || In(Open::kDocument)) {
    absl::StrAppend(&text_, Reference(variable));
  } else if (In(Open::kSingleQuotes)) {
    absl::StrAppend(&text_, "'\"", Reference(variable), "\"'");
  } else {
    absl::StrAppend(&text_, "\"", Reference(variable), "\"");
  }
  previous_ = kMeaningless;
  word_ += kMeaningless;
  document_line_ += kMeaningless;
  return absl::OkStatus();
}

void ShellText::LoseTrack(std::string_view because_of) {
  if (lost_.empty())
    lost_ = absl::StrCat("after ", AbslView(because_of),
                         ", behind which muster can't tell for sure how a shell reads it; accepted: that part in a "
                         "script of its own, or a value of letters, digits and _-+.,:/@ only");
}

void ShellText::Follow(char c) {
  if (Within(Open::kDocument) || In(Open::kRawDocument)) FollowDocumentLine(c);
  if (delimiter_ != Delimiter::kNone) FollowDelimiter(c);
  if (delimiter_ != Delimiter::kNone) return;
  if (escaped_) {
    escaped_ = false;
    previous_ = kMeaningless;
    if (c != '\n') word_ += kMeaningless;
    return;
  }
  if (comment_ && c != '\n') return;
  if (In(Open::kRawDocument)) {
    previous_ = c;
    return;
  }
  if (c == '\\' && !In(Open::kSingleQuotes)) {
    escaped_ = true;
    return;
  }
  if (IsCode()) FollowWord(c);
  if (c == '\'' || c == '"' || c == '`') {
    FollowQuote(c);
  } else if (!In(Open::kSingleQuotes)) {
    FollowOperator(c);
  }
  previous_ = c == '$' && previous_ == '$' ? kProcessNumber : c;
}

// Reads a word as far as it means something to this class.
void ShellText::FollowWord(char c) {
  if (c == '#' && SeparatesWords(previous_)) {
    comment_ = true;
  } else if (!SeparatesWords(c)) {
    word_ += c == '\'' || c == '"' || c == '`' ? kMeaningless : c;
    if (word_ == "[[") LoseTrack("[[");
    if (word_ == "$[") LoseTrack("$[");
    return;
  }
  if (word_ == "case" && Within(Open::kParentheses)) LoseTrack("case within ( )");
  // Their arguments are code once more, or, in bash, arithmetic or the name of a variable, which may be code, too.
  for (const char* builtin : {"eval", "let", "trap", "declare", "typeset", "local", "readonly", "-v"})
    if (word_ == builtin) LoseTrack(builtin);
  word_.clear();
  if (c == '\n') EndLine();
}

void ShellText::FollowQuote(char c) {
  if (In(Open::kSingleQuotes)) {
    if (c == '\'') open_.pop_back();
    return;
  }
  if (c == '`') {
    if (In(Open::kBackquotes)) return open_.pop_back();
    return open_.push_back(Open::kBackquotes);
  }
  if (In(Open::kDocument)) return;
  if (c == '"') {
    if (In(Open::kDoubleQuotes)) return open_.pop_back();
    if (In(Open::kBraces) && Within(Open::kDocument)) LoseTrack("quotes in ${ } in a here-document");
    return open_.push_back(Open::kDoubleQuotes);
  }
  if (In(Open::kDoubleQuotes)) return;
  if (previous_ == '$') LoseTrack("$'");
  if (In(Open::kBraces) && (Within(Open::kDoubleQuotes) || Within(Open::kDocument)))
    return LoseTrack("single quotes in ${ } in double quotes");
  open_.push_back(Open::kSingleQuotes);
}

void ShellText::FollowOperator(char c) {
  if (c == '{' && previous_ == '$') {
    open_.push_back(Open::kBraces);
  } else if (c == '}' && In(Open::kBraces)) {
    open_.pop_back();
  } else if (c == '(' && previous_ == kProcessNumber) {
    LoseTrack("$$(");
  } else if (c == '(' && (IsCode() || previous_ == '$')) {
    const bool second = previous_ == '(' && In(Open::kParentheses);
    if (second) open_.back() = Open::kArithmetic;
    open_.push_back(second || In(Open::kArithmetic) ? Open::kArithmetic : Open::kParentheses);
    word_.clear();
  } else if (c == ')' && (In(Open::kParentheses) || In(Open::kArithmetic))) {
    open_.pop_back();
  } else if (c == '<' && previous_ == '<' && IsCode()) {
    if (In(Open::kArithmetic)) return LoseTrack("<< within (( ))");
    if (Within(Open::kDocument) || In(Open::kBackquotes))
      return LoseTrack("a here-document within another or in backquotes");
    delimiter_ = Delimiter::kOperator;
    announced_ = Document();
  }
}

// Reads what follows `<<`. At its end, `c` is read as any other character.
void ShellText::FollowDelimiter(char c) {
  if (escaped_) {
    escaped_ = false;
    if (c != '\n') announced_.delimiter += c;
    return;
  }
  if (delimiter_ == Delimiter::kSingleQuotes || delimiter_ == Delimiter::kDoubleQuotes) {
    const char end = delimiter_ == Delimiter::kSingleQuotes ? '\'' : '"';
    if (c == '\\' && end == '"') return LoseTrack("a backslash in the delimiter of a here-document");
    if (c == end) {
      delimiter_ = Delimiter::kWord;
    } else {
      announced_.delimiter += c;
    }
    return;
  }
  const bool first = delimiter_ == Delimiter::kOperator;
  if (first && c == '<') {  // <<<, a here-string
    delimiter_ = Delimiter::kNone;
    previous_ = kMeaningless;
    return;
  }
  if (first) delimiter_ = Delimiter::kBlanks;
  if (first && c == '-') {
    announced_.tabs = true;
  } else if (delimiter_ == Delimiter::kBlanks && (c == ' ' || c == '\t')) {
    return;
  } else if (SeparatesWords(c)) {
    delimiter_ = Delimiter::kNone;
    previous_ = kMeaningless;
    waiting_.push_back(announced_);
  } else if (c == '\'' || c == '"') {
    announced_.raw = true;
    delimiter_ = c == '"' ? Delimiter::kDoubleQuotes : Delimiter::kSingleQuotes;
  } else if (c == '\\') {
    announced_.raw = true;
    delimiter_ = Delimiter::kWord;
    escaped_ = true;
  } else {
    if (c == '$' || c == '`') LoseTrack("a here-document whose delimiter has a $ or `");
    delimiter_ = Delimiter::kWord;
    announced_.delimiter += c;
  }
}

void ShellText::EndLine() {
  comment_ = false;
  if (!waiting_.empty()) BeginDocument();
}

void ShellText::BeginDocument() {
  document_ = waiting_.front();
  waiting_.pop_front();
  document_line_.clear();
  open_.push_back(document_.raw ? Open::kRawDocument : Open::kDocument);
}

// Finds the line that ends the present here-document.
void ShellText::FollowDocumentLine(char c) {
  if (c != '\n') {
    document_line_ += c;
    return;
  }
  if (escaped_ && !In(Open::kRawDocument)) {  // the next line belongs to this one
    document_line_.back() = kMeaningless;
    return;
  }
  const size_t tabs = document_.tabs ? document_line_.find_first_not_of('\t') : 0;
  const bool ends = tabs == std::string::npos
                        ? document_.delimiter.empty()
                        : document_line_.compare(tabs, std::string::npos, document_.delimiter) == 0;
  document_line_.clear();
  if (!ends) return;
  // Shells differ in whether they look for it within a $( ) of the document.
  if (!In(Open::kDocument) && !In(Open::kRawDocument))
    return LoseTrack("the end of a here-document within a $( ) of it");
  open_.pop_back();
  previous_ = '\n';
  if (!waiting_.empty()) BeginDocument();
}

}  // namespace muster
