#include "muster/launch/system/simple_command.h"

#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/ascii.h"

namespace muster {
namespace {

// Words that a shell doesn't look for on PATH, of dash and bash.
constexpr std::array<std::string_view, 83> kShellWords = {
    "!",        "%",       ".",       ":",      "[",       "[[",      "alias",   "bg",       "bind",      "break",
    "builtin",  "caller",  "case",    "cd",     "chdir",   "command", "compgen", "complete", "compopt",   "continue",
    "coproc",   "declare", "dirs",    "disown", "do",      "done",    "echo",    "elif",     "else",      "enable",
    "esac",     "eval",    "exec",    "exit",   "export",  "false",   "fc",      "fg",       "fi",        "for",
    "function", "getopts", "hash",    "help",   "history", "if",      "in",      "jobs",     "kill",      "let",
    "local",    "logout",  "mapfile", "popd",   "printf",  "pushd",   "pwd",     "read",     "readarray", "readonly",
    "return",   "select",  "set",     "shift",  "shopt",   "source",  "suspend", "test",     "then",      "time",
    "times",    "trap",    "true",    "type",   "typeset", "ulimit",  "umask",   "unalias",  "unset",     "until",
    "wait",     "while",   "{"};

bool IsProgramName(std::string_view word) {
  constexpr std::string_view kMarks = "_-+./";
  const bool name = !word.empty() && std::all_of(word.begin(), word.end(), [kMarks](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || kMarks.find(c) != std::string_view::npos;
  });
  return name && std::find(kShellWords.begin(), kShellWords.end(), word) == kShellWords.end();
}

// Returns whether the words hold nothing but text and $NAME: no operator, no command in another.
bool HasOnlyWords(std::string_view text) {
  constexpr std::string_view kOperators = ";&|()\n`#";
  char quote = '\0';
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == '\'') {
      if (c == '\'') quote = '\0';
      continue;
    }
    if (c == '\\') return false;
    const bool substitutes = c == '`' || (c == '$' && i + 1 < text.size() && text[i + 1] == '(');
    const bool here_document = quote == '\0' && c == '<' && i + 1 < text.size() && text[i + 1] == '<';
    if (substitutes || here_document || (quote == '\0' && kOperators.find(c) != std::string_view::npos)) return false;
    if (c == '"') {
      quote = quote == '"' ? '\0' : '"';
    } else if (c == '\'' && quote == '\0') {
      quote = c;
    }
  }
  return quote == '\0';
}

}  // namespace

bool IsSimpleCommand(std::string_view command) {
  while (!command.empty() && absl::ascii_isspace(static_cast<unsigned char>(command.front()))) command.remove_prefix(1);
  while (!command.empty() && absl::ascii_isspace(static_cast<unsigned char>(command.back()))) command.remove_suffix(1);
  return IsProgramName(command.substr(0, command.find_first_of(" \t"))) && HasOnlyWords(command);
}

}  // namespace muster
