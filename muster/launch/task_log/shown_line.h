// A line of a task's log as people and as programs get it. Pure, thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "muster/launch/task_log/log_format.h"

namespace muster {

// "4.worker.1 | [2026-01-31T07:23:46Z] --> RUNNING" for a state, "4.worker.1 | text" otherwise, `name` padded to
// `width`, without line end. Control characters and bytes that aren't UTF-8 are shown as \xNN (tabs and colours,
// ESC [ … m, stay where `color` is, colours are dropped otherwise). Of a line that was written over by carriage returns
// (a progress bar) what stood there last.
std::string ShownLine(std::string_view name, size_t width, const LogLineRecord& line, bool color);

// {"id":"4.worker.1","time":"2026-01-31T07:23:46.123456Z","stream":"stdout","text":"text"}: stream is stdout, stderr,
// state or muster; the text as it was, with U+FFFD for bytes that aren't UTF-8.
std::string JsonLine(std::string_view name, const LogLineRecord& line);

}  // namespace muster
