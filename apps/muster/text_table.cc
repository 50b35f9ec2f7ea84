#include "apps/muster/text_table.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "muster/launch/aligned_lines.h"

namespace muster {

std::string OneLine(std::string_view text) {
  std::string line;
  for (const char c : text) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) {
      absl::StrAppendFormat(&line, "\\x%02x", static_cast<unsigned char>(c));
    } else {
      line += c;
    }
  }
  return line;
}

std::string TextTable(std::vector<std::vector<std::string>> rows) {
  for (std::vector<std::string>& row : rows)
    for (std::string& cell : row) cell = OneLine(cell);
  std::string text;
  for (const std::string& line : AlignedLines(rows, rows.front().size())) absl::StrAppend(&text, line, "\n");
  return text;
}

}  // namespace muster
