#include "muster/base/text/one_line.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"

namespace muster {

std::string OneLine(std::string_view text, size_t most) {
  std::string line;
  for (const char c : text.substr(0, most)) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) {
      absl::StrAppendFormat(&line, "\\x%02x", static_cast<unsigned char>(c));
    } else {
      line += c;
    }
  }
  return text.size() > most ? line + "…" : line;
}

}  // namespace muster
