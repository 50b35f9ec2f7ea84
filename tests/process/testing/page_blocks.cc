#include "tests/process/testing/page_blocks.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"

namespace muster {
namespace {

std::string TextOf(const std::string& page) {
  return PosixFileSystem().ReadFile(SourceFolder() + "/docs/" + page).value();
}

std::string ChapterOf(const std::string& page, const std::string& chapter) {
  const std::string text = TextOf(page);
  const size_t begin = chapter.empty() ? 0 : text.find("\n## " + chapter + "\n");
  return text.substr(begin, text.find("\n## ", begin + 1) - begin);
}

}  // namespace

std::vector<std::string> BlocksOfPage(const std::string& page, const std::string& chapter,
                                      const std::string& language) {
  const std::string text = ChapterOf(page, chapter);
  std::vector<std::string> blocks;
  const std::string fence = "\n```" + language + "\n";
  for (size_t at = text.find(fence); at != std::string::npos; at = text.find(fence, at + 1)) {
    const size_t begin = at + fence.size();
    blocks.push_back(text.substr(begin, text.find("\n```", begin) + 1 - begin));
  }
  return blocks;
}

size_t CountOfBlocks(const std::string& page) {
  size_t count = 0;
  bool fenced = false, after_empty = true;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(TextOf(page), '\n'))) {
    const bool is_fence = absl::StartsWith(line, "```");
    const bool begins = is_fence ? !fenced && line != "```" : !fenced && after_empty && absl::StartsWith(line, "    ");
    count += begins ? 1 : 0;
    fenced = fenced != is_fence;
    after_empty = line.empty();
  }
  return count;
}

std::vector<std::vector<std::string>> RowsOfPage(const std::string& page, const std::string& chapter) {
  const std::vector<std::string> lines = absl::StrSplit(ChapterOf(page, chapter), '\n');
  std::vector<std::vector<std::string>> rows;
  bool in_table = false;
  for (const std::string& line : lines) {
    if (!absl::StartsWith(line, "|")) {
      in_table = false;
    } else if (absl::StartsWith(line, "|--")) {
      in_table = true;
    } else if (in_table) {
      std::vector<std::string> cells = absl::StrSplit(line.substr(1, line.rfind('|') - 1), '|');
      for (std::string& cell : cells) absl::StripAsciiWhitespace(&cell);
      rows.push_back(std::move(cells));
    }
  }
  return rows;
}

}  // namespace muster
