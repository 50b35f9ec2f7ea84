#include "muster/launch/system/shell_word.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "muster/base/absl_view.h"

namespace muster {
namespace {

// Returns whether `text` consists of characters that a shell takes as they are, wherever they stand.
bool IsPlainForShell(std::string_view text) {
  constexpr std::string_view kPlain = "_-+=.,:/@%";
  return !text.empty() && std::all_of(text.begin(), text.end(), [kPlain](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || kPlain.find(c) != std::string_view::npos;
  });
}

bool BeginsShellWord(const std::string& before) {
  constexpr std::string_view kBetweenWords = " \t\n;&|()";
  return before.empty() || kBetweenWords.find(before.back()) != std::string_view::npos;
}

// Escapes text for a place that is within single quotes already.
std::string WithinSingleQuotes(std::string_view text) { return absl::StrReplaceAll(AbslView(text), {{"'", "'\\''"}}); }

}  // namespace

std::string QuotedWord(std::string_view text) { return absl::StrCat("'", WithinSingleQuotes(text), "'"); }

std::string ShellWord(std::string_view text) { return IsPlainForShell(text) ? std::string(text) : QuotedWord(text); }

void ShellText::Append(std::string_view text) {
  for (const char c : text) {
    Follow(c);
    text_ += c;
  }
}

void ShellText::AppendValue(std::string_view value) {
  escaped_ = false;
  const char in = open_.empty() ? '\0' : open_.back();
  if (comment_) {
    text_ += absl::StrReplaceAll(AbslView(value), {{"\n", " "}});
  } else if (in == '\'') {
    text_ += WithinSingleQuotes(value);
  } else if (in == '"') {
    text_ += absl::StrReplaceAll(AbslView(value), {{"\\", "\\\\"}, {"\"", "\\\""}, {"$", "\\$"}, {"`", "\\`"}});
  } else {
    text_ += ShellWord(value);
  }
}

// Updates the state for `c`; `text_` is what precedes it.
void ShellText::Follow(char c) {
  const char in = open_.empty() ? '\0' : open_.back();
  if (escaped_) {
    escaped_ = false;
  } else if (comment_) {
    comment_ = c != '\n';
  } else if (in == '\'') {
    if (c == '\'') open_.pop_back();
  } else if (c == '\\') {
    escaped_ = true;
  } else if ((in != '\0' && c == in && c != '(') || (in == '(' && c == ')')) {
    open_.pop_back();
  } else if (c == '`' || (c == '(' && (in != '"' || (!text_.empty() && text_.back() == '$')))) {
    open_ += c;
  } else if (in != '"' && (c == '"' || c == '\'')) {
    open_ += c;
  } else if (in != '"' && c == '#') {
    comment_ = BeginsShellWord(text_);
  }
}

}  // namespace muster
