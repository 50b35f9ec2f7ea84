#include "muster/launch/spec/folded_command.h"

namespace muster {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

// Returns the line without what stands around it.
std::string_view ContentOf(std::string_view line) {
  const size_t begin = line.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return "";
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line.substr(begin);
}

// An even number of backslashes stands for half as many of them.
bool EndsWithContinuation(std::string_view line) {
  const size_t last = line.find_last_not_of('\\');
  const size_t backslashes = line.size() - (last == std::string_view::npos ? 0 : last + 1);
  return backslashes % 2 == 1;
}

}  // namespace

std::string FoldedCommand(std::string_view text, const std::vector<std::string_view>& source) {
  std::string command;
  size_t at = 0;  // in `text`: what is behind the last line found in it
  bool continued = false;
  for (const std::string_view line : source) {
    const std::string_view content = ContentOf(line);
    if (content.empty()) continue;
    const size_t begin = text.find_first_not_of(kBlanks, at);
    if (begin == std::string_view::npos || !text.substr(begin).starts_with(content)) break;
    if (continued) {
      command.pop_back();
      while (command.ends_with(' ') || command.ends_with('\t')) command.pop_back();
    }
    const bool joined = !command.empty() && (continued || content.starts_with('-'));
    command += joined ? std::string_view(" ") : text.substr(at, begin - at);
    command += content;
    at = begin + content.size();
    continued = EndsWithContinuation(content);
  }
  return command.append(text.substr(at));
}

}  // namespace muster
