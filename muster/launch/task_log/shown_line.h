// Formats a line of a task's log for people and for programs. Pure, thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "muster/launch/task_log/log_format.h"

namespace muster {

// Returns whether people are shown the line: of the states only those that they wait for. A task's are BUILDING,
// RUNNING and its end; an experiment's are CREATED and its end.
bool IsShown(const LogLineRecord& line);

// Returns "4.worker.1 | [2026-01-31T07:23:46Z] --> RUNNING" for a state, "4.worker.1 | text" otherwise, `name` padded
// to `width`, without line end. Control characters and bytes that aren't UTF-8 are shown as \xNN, except tabs; colours
// (ESC [ … m) stay if `color`, otherwise they are dropped. A line that overwrote itself with carriage returns (a
// progress bar) shows its last text.
std::string ShownLine(std::string_view name, size_t width, const LogLineRecord& line, bool color);

// Returns {"id":"4.worker.1","time":"2026-01-31T07:23:46.123456Z","stream":"stdout","text":"text"}: stream is stdout,
// stderr, state or muster; the text is unchanged, with U+FFFD for bytes that aren't UTF-8.
std::string JsonLine(std::string_view name, const LogLineRecord& line);

}  // namespace muster
