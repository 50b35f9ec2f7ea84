#include "muster/launch/task_log/log_format.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/time/civil_time.h"
#include "muster/base/files/file_system.h"

namespace muster {
namespace {

// '0' stands for a digit, 'k' for a kind; all other characters for themselves.
constexpr std::string_view kLogHeadPattern = "0000-00-00T00:00:00.000000Z k ";
static_assert(kLogHeadPattern.size() == kLogLineHead);

constexpr std::string_view kLogFileSuffix = ".log";
constexpr size_t kLogSecondBytes = 19;  // "2026-01-31T07:23:46"
constexpr size_t kLogMicrosAt = 20;
constexpr size_t kLogMicrosEnd = 26;
constexpr size_t kLogKindAt = 28;
constexpr int64_t kLastLogMicros = 253'402'300'799'999'999;  // end of the year 9999

bool FitsLogHead(std::string_view text) {
  for (size_t i = 0; i < std::min(text.size(), kLogLineHead); ++i) {
    const char c = text[i];
    switch (kLogHeadPattern[i]) {
      case '0':
        if (c < '0' || c > '9') return false;
        break;
      case 'k':
        if (c != 'o' && c != 'e' && c != 's' && c != 'm') return false;
        break;
      default:
        if (c != kLogHeadPattern[i]) return false;
    }
  }
  return true;
}

int LogDigits(std::string_view digits) {
  int value = 0;
  for (const char digit : digits) value = value * 10 + (digit - '0');
  return value;
}

// Returns 0 if it isn't the name of a log file.
int64_t LogFileNumber(std::string_view name) {
  if (name.size() <= kLogFileSuffix.size() || name.substr(name.size() - kLogFileSuffix.size()) != kLogFileSuffix)
    return 0;
  name.remove_suffix(kLogFileSuffix.size());
  int64_t number = 0;
  if (name[0] < '0' || name[0] > '9' || !absl::SimpleAtoi(absl::string_view(name.data(), name.size()), &number))
    return 0;
  return LogFileName(number).size() == name.size() + kLogFileSuffix.size() ? number : 0;
}

}  // namespace

std::string LogFileName(int64_t number) { return absl::StrFormat("%06d.log", number); }

std::vector<int64_t> LogFileNumbers(const std::string& folder) {
  std::vector<int64_t> numbers;
  const auto names = PosixFileSystem().ListDirectory(folder);
  if (!names.ok()) return numbers;
  for (const std::string& name : *names)
    if (const int64_t number = LogFileNumber(name); number > 0) numbers.push_back(number);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

void LogLineFormat::Append(absl::Time when, LogKind kind, std::string_view text, std::string& to) {
  const int64_t micros = std::clamp<int64_t>(absl::ToUnixMicros(when), 0, kLastLogMicros);
  const int64_t second = micros / 1'000'000;
  if (second != head_second_) {
    const std::string shown =
        absl::FormatTime("%Y-%m-%dT%H:%M:%S.000000Z o ", absl::FromUnixSeconds(second), absl::UTCTimeZone());
    std::memcpy(head_, shown.data(), kLogLineHead);
    head_second_ = second;
  }
  int64_t rest = micros % 1'000'000;
  for (size_t i = kLogMicrosEnd; i-- > kLogMicrosAt; rest /= 10) head_[i] = static_cast<char>('0' + rest % 10);
  head_[kLogKindAt] = static_cast<char>(kind);
  to.append(head_, kLogLineHead);
  to.append(text);
  to.push_back('\n');
}

bool LogLineFormat::Parse(std::string_view line, LogLineRecord& into) {
  if (line.size() < kLogLineHead || !FitsLogHead(line)) return false;
  const std::string_view second = line.substr(0, kLogSecondBytes);
  if (second != parsed_) {
    parsed_ = second;
    const absl::CivilSecond civil(LogDigits(second.substr(0, 4)), LogDigits(second.substr(5, 2)),
                                  LogDigits(second.substr(8, 2)), LogDigits(second.substr(11, 2)),
                                  LogDigits(second.substr(14, 2)), LogDigits(second.substr(17, 2)));
    parsed_second_ = absl::FromCivil(civil, absl::UTCTimeZone());
  }
  into.when = parsed_second_ + absl::Microseconds(LogDigits(line.substr(kLogMicrosAt, kLogMicrosEnd - kLogMicrosAt)));
  into.kind = static_cast<LogKind>(line[kLogKindAt]);
  into.text = line.substr(kLogLineHead);
  return true;
}

bool IsTornLogLine(std::string_view line) { return line.size() < kLogLineHead && FitsLogHead(line); }

}  // namespace muster
