#include "muster/launch/output/aligned_lines.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "muster/base/text/one_line.h"

namespace muster {
namespace {

size_t CharactersOf(const std::string& text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }));
}

}  // namespace

std::vector<std::string> AlignedLines(std::vector<std::vector<std::string>> cells, size_t left) {
  std::vector<size_t> widths;
  for (auto& row : cells) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = OneLine(row[i]);
      widths[i] = std::max(widths[i], CharactersOf(row[i]));
    }
  }
  std::vector<std::string> lines;
  for (const auto& row : cells) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string fill(widths[i] - CharactersOf(row[i]), ' ');
      absl::StrAppend(&line, i == 0 ? "" : "  ", i < left ? "" : fill, row[i], i < left ? fill : "");
    }
    absl::StripTrailingAsciiWhitespace(&line);
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string AlignedText(std::vector<std::vector<std::string>> cells, size_t left) {
  std::string text;
  for (const std::string& line : AlignedLines(std::move(cells), left)) absl::StrAppend(&text, line, "\n");
  return text;
}

}  // namespace muster
