#include "bench/support/numbered_lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "absl/strings/numbers.h"
#include "muster/base/absl_view.h"

namespace muster::bench {
namespace {

constexpr size_t kDigits = 8;
constexpr size_t kWriteBytes = 64 << 10;
constexpr std::string_view kBehindNumber =
    " step done: loss 0.69314718, accuracy 0.5000, 123.4 steps a second, yes"
    " step done: loss 0.69314718, accuracy 0.5000, 123.4 steps a second, yes";
static_assert(kDigits + kBehindNumber.size() + 1 >= kMostNumberedLineBytes);

// Returns what follows the number in a line that has so many bytes with its end.
std::string_view BehindNumber(size_t line_bytes) { return kBehindNumber.substr(0, line_bytes - kDigits - 1); }

bool WriteAll(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

int PrintNumberedLines(int64_t count, const std::string& gate, size_t line_bytes) {
  const std::string_view behind = BehindNumber(line_bytes);
  std::string waiting;
  for (int64_t number = 0; number < count; ++number) {
    std::array<char, kDigits> digits;
    int64_t rest = number;
    for (size_t i = kDigits; i-- > 0; rest /= 10) digits[i] = static_cast<char>('0' + rest % 10);
    waiting.append(digits.data(), kDigits);
    waiting.append(behind);
    waiting.push_back('\n');
    if (waiting.size() < kWriteBytes) continue;
    if (!WriteAll(waiting)) return 1;
    waiting.clear();
  }
  waiting.append(kAllPrinted);
  waiting.push_back('\n');
  if (!WriteAll(waiting)) return 1;
  if (gate.empty()) return 0;
  const int fifo = open(gate.c_str(), O_RDONLY);
  char byte = 0;
  return fifo >= 0 && read(fifo, &byte, 1) == 1 ? 0 : 1;
}

bool LineCount::Take(std::string_view task, std::string_view line) {
  int64_t number = 0;
  if (line.size() + 1 != line_bytes_ || line.substr(kDigits) != BehindNumber(line_bytes_) ||
      !absl::SimpleAtoi(AbslView(line.substr(0, kDigits)), &number))
    return false;
  auto found = next_.find(task);
  if (found == next_.end()) found = next_.emplace(std::string(task), 0).first;
  if (number == found->second) {
    ++found->second;
    ++whole_;
  }
  return true;
}

}  // namespace muster::bench
