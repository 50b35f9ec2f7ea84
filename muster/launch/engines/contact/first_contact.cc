#include "muster/launch/engines/contact/first_contact.h"

#include <algorithm>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "muster/base/absl_view.h"
#include "muster/launch/project/sha256.h"
#include "muster/launch/system/shell_word.h"

namespace muster {
namespace {

constexpr char kStart[] = "muster-start";
constexpr char kSend[] = "muster-send";
constexpr char kFailed[] = "muster-failed";

// Beside single quotes, these have no newline and no '!' or '\': csh ends a quoted text at the one and reads the
// others.

// A function: whether nobody else may have put something in the place of the file $m in $d in $c. `ls` shows
// "drwxr-xr-x 2 UID ...".
constexpr char kIsOwn[] =
    "own() { for p in \"$c\" \"$c/bin\" \"$d\" \"$m\"; do "
    "set -- $(ls -ldnL \"$p\"); case $1 in ?????w*|????????w*) set -- x; esac; "
    "[ \"$3\" = \"$(id -u)\" ] || { "
    "echo \"$p belongs to somebody else, or others may write there; chmod go-w makes it private, or "
    "set XDG_CACHE_HOME on that host to a folder that is\" >&2; return 1; }; done; }; ";

constexpr char kBegin[] =
    "u=$(umask); umask 077; "
    "c=\"${XDG_CACHE_HOME:-$HOME/.cache}/muster\"; "
    "read -r hash size job grace || exit 3; "
    "d=\"$c/bin/$hash\"; m=\"$d/muster\"; ";

// A file of another size is one that a crash of the host has left.
constexpr char kCopyAndStart[] =
    "[ -x \"$m\" ] && [ \"$(wc -c <\"$m\")\" -eq \"$size\" ] || { "
    "echo \"muster-send $(uname -s) $(uname -m) $(getconf GNU_LIBC_VERSION 2>/dev/null | tr \" \" _)\"; "
    "{ mkdir -p \"$d\" && t=$(mktemp \"$d/.XXXXXX\") && head -c \"$size\" >\"$t\" && [ \"$(wc -c "
    "<\"$t\")\" -eq \"$size\" ] && "
    "chmod 700 \"$t\" && mv \"$t\" \"$m\"; } || { rm -f \"$t\"; echo muster-failed; exit 4; }; "
    "}; "
    "own || { echo muster-failed; exit 4; }; "
    "echo muster-start; umask \"$u\"; "
    "exec \"$m\" agent --attach \"$job\" --grace \"$grace\"";

}  // namespace

MusterFile MusterFileOf(std::string_view program) {
  Sha256 hash;
  hash.Add(program);
  return {.hash = absl::BytesToHexString(hash.Finish()), .bytes = program.size()};
}

std::string OwnCommandThere(const MusterFile& muster, const std::pair<std::string, std::string>& variable,
                            const std::vector<std::string>& words) {
  std::string command = absl::StrCat("exec env ", QuotedWord(absl::StrCat(variable.first, "=", variable.second)),
                                     " sh -c 'c=\"${XDG_CACHE_HOME:-$HOME/.cache}/muster\"; d=\"$c/bin/", muster.hash,
                                     "\"; m=\"$d/muster\"; [ -x \"$m\" ] || exit ", kNoMusterThere, "; ", kIsOwn,
                                     "own || exit 1; exec \"$m\" \"$@\"' muster");
  for (const std::string& word : words) absl::StrAppend(&command, " ", QuotedWord(word));
  return command;
}

std::string FirstContactCommand() { return absl::StrCat("exec sh -c '", kBegin, kIsOwn, kCopyAndStart, "'"); }

std::vector<std::string> FirstContactWords() { return {"sh", "-c", absl::StrCat(kBegin, kIsOwn, kCopyAndStart)}; }

std::string FirstContactLine(const MusterFile& muster, const std::string& job, absl::Duration grace) {
  return absl::StrCat(muster.hash, " ", muster.bytes, " ", job, " ", absl::ToInt64Seconds(grace), "\n");
}

size_t FirstContact::Take(std::string_view bytes) {
  size_t used = 0;
  while (used < bytes.size() && state_ != State::kStarted) {
    const size_t end = bytes.find('\n', used);
    const size_t next = end == std::string_view::npos ? bytes.size() : end + 1;
    line_.append(bytes.substr(used, next - used));
    used = next;
    if (line_.size() + banner_.size() > kMostBanner) {
      state_ = State::kNoMuster;
      return bytes.size();
    }
    if (end == std::string_view::npos) break;
    line_.pop_back();
    if (!line_.empty() && line_.back() == '\r') line_.pop_back();
    TakeLine(line_);
    line_.clear();
  }
  return used;
}

void FirstContact::TakeLine(std::string_view line) {
  const std::vector<std::string> words = absl::StrSplit(AbslView(line), ' ', absl::SkipEmpty());
  const std::string word = words.empty() ? "" : words.front();
  if (word == kStart && words.size() == 1) {
    state_ = State::kStarted;
  } else if (word == kFailed && words.size() == 1) {
    state_ = State::kFailed;
  } else if (word == kSend && (words.size() == 3 || words.size() == 4)) {
    // Another system's machine is no machine of ours, whatever its name.
    system_.machine = words[1] == "Linux" ? words[2] : absl::StrCat(words[2], " (", words[1], ")");
    system_.glibc = words.size() == 4 ? GlibcOfHost(absl::StrReplaceAll(words[3], {{"_", " "}})) : std::nullopt;
    state_ = State::kSend;
  } else if (!line.empty()) {
    absl::StrAppend(&banner_, AbslView(line), "\n");
  }
}

}  // namespace muster
