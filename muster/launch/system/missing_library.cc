#include "muster/launch/system/missing_library.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace muster {

std::string MissingLibraryText(const ExitStatus& status, const std::deque<std::string>& last_lines,
                               const std::string& host) {
  constexpr char kWords[] = "error while loading shared libraries: ";  // of ld.so of glibc
  if (status.signal != 0 || status.code != 127) return "";
  for (const std::string& line : last_lines) {
    const size_t at = line.find(kWords);
    if (at == std::string::npos) continue;
    std::string library = line.substr(at + sizeof kWords - 1);
    library.resize(std::min(library.find(':'), library.size()));
    return absl::StrCat(" (", library, ", a shared library of its program, isn't found",
                        host.empty() ? ""
                                     : absl::StrCat(" on ", host,
                                                    "; accepted: a program in a folder that all "
                                                    "hosts see, or one that `setup` prepares there"),
                        ")");
  }
  return "";
}

}  // namespace muster
