#include "muster/observe/trace_part.h"

#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr std::string_view kEventBegins = "{\"ts\":";
constexpr std::string_view kMetadataBegins = "{\"pid\":";
constexpr std::string_view kPid = ",\"pid\":";
constexpr int kVersion = 1;

// Appends microseconds with three decimals, the format's unit, without rounding.
void AppendMicros(int64_t nanos, std::string& to) {
  char digits[32];
  if (nanos < 0) to += '-';
  const uint64_t size = nanos < 0 ? -static_cast<uint64_t>(nanos) : static_cast<uint64_t>(nanos);
  to.append(digits, std::to_chars(digits, digits + sizeof digits, size / 1000).ptr);
  const uint64_t rest = size % 1000;
  to += '.';
  to += static_cast<char>('0' + rest / 100);
  to += static_cast<char>('0' + rest / 10 % 10);
  to += static_cast<char>('0' + rest % 10);
}

void AppendNumber(uint64_t number, std::string& to) {
  char digits[32];
  to.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

// Reads "1234.567" at the beginning of `text`; returns its length, or 0.
size_t ReadMicros(std::string_view text, int64_t& nanos) {
  int64_t micros = 0;
  const bool negative = text.substr(0, 1) == "-";
  const char* const begin = text.data() + (negative ? 1 : 0);
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), micros);
  const auto at = static_cast<size_t>(end - text.data());
  if (error != std::errc() || micros < 0 || text.size() < at + 4 || text[at] != '.') return 0;
  int64_t rest = 0;
  const auto [rest_end, rest_error] = std::from_chars(end + 1, end + 4, rest);
  if (rest_error != std::errc() || rest_end != end + 4) return 0;
  nanos = (micros * 1000 + rest) * (negative ? -1 : 1);
  return at + 4;
}

// Returns the length of the digits at the beginning of `text`.
size_t SkipDigits(std::string_view text) {
  const size_t end = text.find_first_not_of("0123456789");
  return end == std::string_view::npos ? 0 : end;
}

const char* FlowPhase(Activity activity) {
  switch (activity) {
    case Activity::kPush:
      return "s";
    case Activity::kApply:
      return "t";
    case Activity::kPull:
      return "f";
    default:
      return nullptr;
  }
}

void AppendHead(int64_t begin, int64_t pid, size_t track, std::string& to) {
  to += kEventBegins;
  AppendMicros(begin, to);
  to += kPid;
  AppendNumber(static_cast<uint64_t>(pid), to);
  to += ",\"tid\":";
  AppendNumber(track, to);
}

void AppendFlow(int64_t pid, size_t track, const TraceEvent& event, std::string& to) {
  const char* const phase = FlowPhase(event.activity);
  if (phase == nullptr) return;
  AppendHead(event.begin, pid, track, to);
  absl::StrAppend(&to, ",\"ph\":\"", phase, "\",\"cat\":\"update\",\"name\":\"update\",\"bp\":\"e\",\"id\":\"",
                  (event.flow >> 48) - 1, ".", event.flow & 0xffffffffffff, "\"},\n");
}

absl::Status ReadHead(std::string_view line, TracePart& part) {
  const nlohmann::json head = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!head.is_object() || head.value("name", "") != "muster_part" || !head.contains("args"))
    return absl::InvalidArgumentError("it isn't a part of a trace: its second line doesn't name its writer");
  const nlohmann::json& args = head.at("args");
  if (args.value("version", 0) != kVersion)
    return absl::InvalidArgumentError(
        absl::StrCat("it is a part of version ", args.value("version", 0), "; accepted: ", kVersion));
  part.identity = {.task = args.value("task", ""),
                   .pid = head.value("pid", int64_t{0}),
                   .host = args.value("host", ""),
                   .begin = args.value("begin_ns", int64_t{0})};
  return absl::OkStatus();
}

void ReadMetadata(std::string_view line, TracePart& part) {
  const nlohmann::json metadata = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!metadata.is_object() || !metadata.contains("args") || !metadata.at("args").is_object()) return;
  const nlohmann::json& args = metadata.at("args");
  const std::string name = metadata.value("name", "");
  if (name == "thread_name") part.metadata.push_back(line);
  if (name == "muster_clock")
    part.clock.push_back({.at = args.value("at_ns", int64_t{0}),
                          .offset = args.value("offset_ns", int64_t{0}),
                          .uncertainty = args.value("uncertainty_ns", int64_t{0})});
  if (name == "muster_end") {
    part.ended = true;
    part.left_out = args.value("left_out", uint64_t{0});
  }
}

}  // namespace

std::string ThisHost() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return boot;
}

std::string PartHead(const TraceIdentity& identity) {
  const nlohmann::ordered_json head = {
      {"pid", identity.pid},
      {"ph", "M"},
      {"name", "muster_part"},
      {"args",
       {{"version", kVersion}, {"task", identity.task}, {"host", identity.host}, {"begin_ns", identity.begin}}}};
  const nlohmann::ordered_json name = {
      {"pid", identity.pid}, {"ph", "M"}, {"name", "process_name"}, {"args", {{"name", identity.task}}}};
  return absl::StrCat("[\n", head.dump(), ",\n", name.dump(), ",\n");
}

void AppendTrackName(int64_t pid, size_t track, std::string_view name, std::string& to) {
  const nlohmann::ordered_json line = {
      {"pid", pid}, {"ph", "M"}, {"tid", track}, {"name", "thread_name"}, {"args", {{"name", name}}}};
  absl::StrAppend(&to, line.dump(), ",\n");
}

void AppendEvent(int64_t pid, size_t track, const TraceEvent& event, std::string& to) {
  AppendHead(event.begin, pid, track, to);
  to += ",\"dur\":";
  AppendMicros(event.duration, to);
  to += ",\"ph\":\"X\",\"name\":\"";
  to += ActivityName(event.activity);
  to += "\",\"args\":{\"step\":";
  AppendNumber(static_cast<uint64_t>(std::max<int64_t>(event.step, 0)), to);
  if (event.bytes > 0) {
    to += ",\"bytes\":";
    AppendNumber(event.bytes, to);
  }
  to += "}},\n";
  if (event.flow != 0) AppendFlow(pid, track, event, to);
}

void AppendClockSample(int64_t pid, const ClockSample& sample, std::string& to) {
  absl::StrAppend(&to, "{\"pid\":", pid, ",\"ph\":\"M\",\"name\":\"muster_clock\",\"args\":{\"at_ns\":", sample.at,
                  ",\"offset_ns\":", sample.offset, ",\"uncertainty_ns\":", sample.uncertainty, "}},\n");
}

std::string PartEnd(int64_t pid, uint64_t left_out) {
  return absl::StrCat("{\"pid\":", pid, ",\"ph\":\"M\",\"name\":\"muster_end\",\"args\":{\"left_out\":", left_out,
                      "}}\n]\n");
}

absl::StatusOr<TracePart> ParsePart(std::string_view text) {
  TracePart part;
  if (text.substr(0, 2) != "[\n") return absl::InvalidArgumentError("it isn't a part of a trace");
  bool first = true;
  for (size_t at = 2; at < text.size();) {
    const size_t end = text.find('\n', at);
    if (end == std::string_view::npos) break;  // the writer was killed in the middle of a line
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (!line.empty() && line.back() == ',') line.remove_suffix(1);
    if (std::exchange(first, false)) {
      if (absl::Status read = ReadHead(line, part); !read.ok()) return read;
    } else if (line.substr(0, kEventBegins.size()) == kEventBegins && line.back() == '}') {
      part.events.push_back(line);
    } else if (line.substr(0, kMetadataBegins.size()) == kMetadataBegins) {
      ReadMetadata(line, part);
    }
  }
  if (first) return absl::InvalidArgumentError("it isn't a part of a trace: it ends before it names its writer");
  return part;
}

std::optional<int64_t> TimeOf(std::string_view line) {
  int64_t nanos = 0;
  if (line.substr(0, kEventBegins.size()) != kEventBegins) return std::nullopt;
  if (ReadMicros(line.substr(kEventBegins.size()), nanos) == 0) return std::nullopt;
  return nanos;
}

std::optional<std::string> MovedLine(std::string_view line, int64_t offset, int64_t pid) {
  std::string moved;
  if (line.substr(0, kMetadataBegins.size()) == kMetadataBegins) {
    line.remove_prefix(kMetadataBegins.size());
    moved = kMetadataBegins;
  } else {
    int64_t nanos = 0;
    if (line.substr(0, kEventBegins.size()) != kEventBegins) return std::nullopt;
    line.remove_prefix(kEventBegins.size());
    const size_t digits = ReadMicros(line, nanos);
    if (digits == 0 || line.substr(digits, kPid.size()) != kPid) return std::nullopt;
    line.remove_prefix(digits + kPid.size());
    moved = kEventBegins;
    AppendMicros(nanos + offset, moved);
    moved += kPid;
  }
  const size_t digits = SkipDigits(line);
  if (digits == 0) return std::nullopt;
  AppendNumber(static_cast<uint64_t>(pid), moved);
  moved += line.substr(digits);
  return moved;
}

}  // namespace muster
