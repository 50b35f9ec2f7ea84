#include "tests/process/testing/page_blocks.h"

#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"

namespace muster {

std::vector<std::string> BlocksOfPage(const std::string& page, const std::string& chapter,
                                      const std::string& language) {
  std::string text = PosixFileSystem().ReadFile(SourceFolder() + "/docs/" + page).value();
  text = text.substr(text.find("\n## " + chapter + "\n"));
  text = text.substr(0, text.find("\n## ", 1));
  std::vector<std::string> blocks;
  const std::string fence = "\n```" + language + "\n";
  for (size_t at = text.find(fence); at != std::string::npos; at = text.find(fence, at + 1)) {
    const size_t begin = at + fence.size();
    blocks.push_back(text.substr(begin, text.find("\n```", begin) + 1 - begin));
  }
  return blocks;
}

}  // namespace muster
