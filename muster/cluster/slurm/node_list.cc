#include "muster/cluster/slurm/node_list.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/quoted.h"

namespace muster {
namespace {

// 65,536 names as Slurm shortens them at worst, one by one, would be longer; nobody has such a list.
constexpr size_t kLongestNodeList = 1 << 20;
constexpr size_t kMostNodeDigits = 9;
constexpr size_t kLongestNodeName = 253;

absl::Status NotANodeList(std::string_view text, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("node list ", Quoted(text), ": ", why, "; accepted: names as in n[1-3,07-09],login1"));
}

absl::Status NotCounts(std::string_view text, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("counts ", Quoted(text), ": ", why, "; accepted: numbers from 1 to ",
                                                 kMostTasksOfANode, " as in 4(x2),8, for ", kMostSlurmNodes,
                                                 " nodes at most"));
}

bool IsSlurmNumber(std::string_view digits) {
  if (digits.empty() || digits.size() > kMostNodeDigits) return false;
  for (char c : digits)
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) return false;
  return true;
}

int64_t SlurmNumberOf(std::string_view digits) {
  int64_t number = 0;
  for (char c : digits) number = number * 10 + (c - '0');
  return number;
}

// Cuts `text` at commas outside of brackets.
std::vector<std::string_view> NodeListItems(std::string_view text) {
  std::vector<std::string_view> items;
  size_t begin = 0;
  bool inside = false;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[') inside = true;
    if (i < text.size() && text[i] == ']') inside = false;
    if (i < text.size() && (text[i] != ',' || inside)) continue;
    items.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  return items;
}

// Expands the inside of a bracket: "1-3,07" is 1, 2, 3, 07.
absl::StatusOr<std::vector<std::string>> ExpandRanges(std::string_view text, std::string_view ranges) {
  std::vector<std::string> numbers;
  for (const absl::string_view part : absl::StrSplit(absl::string_view(ranges.data(), ranges.size()), ',')) {
    const std::string_view range(part.data(), part.size());
    const size_t dash = range.find('-');
    const std::string_view first = range.substr(0, dash);
    const std::string_view last = dash == std::string_view::npos ? first : range.substr(dash + 1);
    if (!IsSlurmNumber(first) || !IsSlurmNumber(last)) return NotANodeList(text, Quoted(range) + " is not a range");
    const int64_t low = SlurmNumberOf(first), high = SlurmNumberOf(last);
    if (low > high) return NotANodeList(text, Quoted(range) + " goes down");
    if (high - low >= kMostSlurmNodes - static_cast<int64_t>(numbers.size()))
      return NotANodeList(text, absl::StrCat("more than ", kMostSlurmNodes, " nodes"));
    for (int64_t number = low; number <= high; ++number) {
      const std::string digits = absl::StrCat(number);
      numbers.push_back(std::string(first.size() - std::min(first.size(), digits.size()), '0') + digits);
    }
  }
  return numbers;
}

// Appends each of `endings` to each of `names`.
absl::Status AppendEach(std::string_view text, std::vector<std::string>& names,
                        const std::vector<std::string>& endings) {
  if (names.size() * endings.size() > kMostSlurmNodes)
    return NotANodeList(text, absl::StrCat("more than ", kMostSlurmNodes, " nodes"));
  std::vector<std::string> longer;
  longer.reserve(names.size() * endings.size());
  for (const std::string& name : names) {
    for (const std::string& ending : endings) {
      longer.push_back(name + ending);
      if (longer.back().size() > kLongestNodeName) return NotANodeList(text, "a name of more than 253 letters");
    }
  }
  names = std::move(longer);
  return absl::OkStatus();
}

absl::Status ExpandItem(std::string_view text, std::string_view item, std::vector<std::string>& nodes) {
  if (item.empty()) return NotANodeList(text, "an empty name");
  std::vector<std::string> names = {""};
  while (!item.empty()) {
    if (item.front() == '[') {
      const size_t close = item.find(']');
      if (close == std::string_view::npos) return NotANodeList(text, "a bracket that isn't closed");
      ASSIGN_OR_RETURN(const std::vector<std::string> numbers, ExpandRanges(text, item.substr(1, close - 1)));
      RETURN_IF_ERROR(AppendEach(text, names, numbers));
      item.remove_prefix(close + 1);
      continue;
    }
    const std::string_view letters = item.substr(0, item.find('['));
    for (char c : letters) {
      if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_' && c != '.')
        return NotANodeList(text, Quoted(std::string(1, c)) + " in a name");
    }
    RETURN_IF_ERROR(AppendEach(text, names, {std::string(letters)}));
    item.remove_prefix(letters.size());
  }
  if (nodes.size() + names.size() > kMostSlurmNodes)
    return NotANodeList(text, absl::StrCat("more than ", kMostSlurmNodes, " nodes"));
  nodes.insert(nodes.end(), names.begin(), names.end());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandNodeList(std::string_view text) {
  if (text.size() > kLongestNodeList) return NotANodeList(text, "longer than 1 MiB");
  std::vector<std::string> nodes;
  for (const std::string_view item : NodeListItems(text)) RETURN_IF_ERROR(ExpandItem(text, item, nodes));
  return nodes;
}

absl::StatusOr<std::vector<int>> ExpandCounts(std::string_view text) {
  if (text.size() > kLongestNodeList) return NotCounts(text, "longer than 1 MiB");
  std::vector<int> counts;
  for (const absl::string_view part : absl::StrSplit(absl::string_view(text.data(), text.size()), ',')) {
    const std::string_view item(part.data(), part.size());
    const size_t open = item.find('(');
    const std::string_view count = item.substr(0, open);
    std::string_view times = "1";
    if (open != std::string_view::npos) {
      const std::string_view inside = item.substr(open);
      if (inside.size() < 4 || inside.substr(0, 2) != "(x" || inside.back() != ')')
        return NotCounts(text, Quoted(item) + " is not a count");
      times = inside.substr(2, inside.size() - 3);
    }
    if (!IsSlurmNumber(count) || !IsSlurmNumber(times)) return NotCounts(text, Quoted(item) + " is not a count");
    if (SlurmNumberOf(count) < 1 || SlurmNumberOf(count) > kMostTasksOfANode || SlurmNumberOf(times) < 1)
      return NotCounts(text, Quoted(item) + " is out of range");
    if (SlurmNumberOf(times) > kMostSlurmNodes - static_cast<int64_t>(counts.size()))
      return NotCounts(text, "too many nodes");
    counts.insert(counts.end(), static_cast<size_t>(SlurmNumberOf(times)), static_cast<int>(SlurmNumberOf(count)));
  }
  return counts;
}

}  // namespace muster
