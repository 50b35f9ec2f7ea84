#include "muster/launch/task_log/shown_line.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"

namespace muster {
namespace {

constexpr char kShownLineEscape = '\x1b';

// Returns the length of the UTF-8 character at the start of `text`; 0 if it is none, or one that controls a terminal
// (C1, C2 80 … 9F).
size_t ShownLineCharacter(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(i < text.size() ? text[i] : 0); };
  const auto continues = [byte](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const unsigned char first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7F ? 1 : 0;
  if (first < 0xC2 || first > 0xF4 || !continues(1)) return 0;
  if (first < 0xE0) return first == 0xC2 && byte(1) < 0xA0 ? 0 : 2;
  if (!continues(2)) return 0;
  // Overlong forms and surrogates begin with certain first bytes, and are recognised by the second.
  if (first < 0xF0) return (first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) >= 0xA0) ? 0 : 3;
  if (!continues(3)) return 0;
  return (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) >= 0x90) ? 0 : 4;
}

// Returns the length of the colour sequence, ESC [ 1 ; 31 m, at the start of `text`; 0 if there is none.
size_t ShownLineColor(std::string_view text) {
  if (text.size() < 3 || text[0] != kShownLineEscape || text[1] != '[') return 0;
  const size_t end = text.find_first_not_of("0123456789;:", 2);
  return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
}

// Returns the text after the last carriage return, except those at the end of the line.
std::string_view ShownLineLast(std::string_view text) {
  while (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  const size_t over = text.rfind('\r');
  return over == std::string_view::npos ? text : text.substr(over + 1);
}

void AppendShownText(std::string_view text, bool color, std::string& to) {
  bool colored = false;
  for (text = ShownLineLast(text); !text.empty();) {
    const size_t coloring = ShownLineColor(text);
    const size_t character = text[0] == '\t' ? 1 : ShownLineCharacter(text);
    if (coloring > 0) {
      if (color) to.append(text.substr(0, coloring));
      colored = color;
    } else if (character > 0) {
      to.append(text.substr(0, character));
    } else {
      absl::StrAppendFormat(&to, "\\x%02x", static_cast<unsigned char>(text[0]));
    }
    text.remove_prefix(std::max<size_t>({coloring, character, 1}));
  }
  if (colored) to.append("\x1b[0m");  // the next line belongs to another task
}

std::string_view ShownLineStream(LogKind kind) {
  switch (kind) {
    case LogKind::kStdout:
      return "stdout";
    case LogKind::kStderr:
      return "stderr";
    case LogKind::kState:
      return "state";
    case LogKind::kMuster:
      return "muster";
  }
  return "";
}

}  // namespace

bool IsShown(const LogLineRecord& line) {
  if (line.kind != LogKind::kState) return true;
  for (const std::string_view end : {"FINISHED", "FAILED", "KILLED"})
    if (line.text == end) return true;
  const bool of_experiment = line.task == kExperimentLog || line.task.ends_with(absl::StrCat(".", kExperimentLog));
  if (of_experiment) return line.text == "CREATED";
  return line.text == "BUILDING" || line.text == "RUNNING";
}

std::string ShownLine(std::string_view name, size_t width, const LogLineRecord& line, bool color) {
  std::string shown(name);
  if (shown.size() < width) shown.append(width - shown.size(), ' ');
  shown.append(" | ");
  if (line.kind == LogKind::kState)
    shown.append(absl::FormatTime("[%Y-%m-%dT%H:%M:%SZ] --> ", line.when, absl::UTCTimeZone()));
  AppendShownText(line.text, color, shown);
  return shown;
}

std::string JsonLine(std::string_view name, const LogLineRecord& line) {
  const nlohmann::ordered_json object = {
      {"id", name},
      {"time", absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", line.when, absl::UTCTimeZone())},
      {"stream", ShownLineStream(line.kind)},
      {"text", line.text}};
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace muster
