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

// Escapes text for a place that is within single quotes already.
std::string WithinSingleQuotes(std::string_view text) { return absl::StrReplaceAll(AbslView(text), {{"'", "'\\''"}}); }

}  // namespace

std::string QuotedWord(std::string_view text) { return absl::StrCat("'", WithinSingleQuotes(text), "'"); }

std::string ShellWord(std::string_view text) { return IsPlainForShell(text) ? std::string(text) : QuotedWord(text); }

}  // namespace muster
