// A mark that all processes of one backend inherit, whatever they do: a new session, a dead parent, another program,
// an environment without variables. It is the soft limit of their real-time computing (RLIMIT_RTTIME, setrlimit(2)), a
// number of microseconds that is made of the backend's id and that no process reaches in 100,000 years. Setting it
// needs no privilege, and /proc/PID/limits shows it. A process loses it only where it, or what starts it (a login, a
// service manager, a container), sets this very limit. Thread-safe.
#pragma once

#include <sys/resource.h>

#include <string>
#include <string_view>

namespace muster {

// Returns the mark of the backend with this MUSTER_AGENT_ID; no other backend's is the same by chance.
rlim_t MarkOf(const std::string& agent_id);

// Marks this process and what it will start. On failure (the user's hard limit is lower) there is no mark. May be
// called between fork and exec.
void SetMark(rlim_t mark);

// Takes a mark away from this process and what it will start, because they outlive the task that has started them. May
// be called between fork and exec.
void ClearMark();

// Returns the mark in the text of /proc/PID/limits; 0 if there is none.
rlim_t MarkIn(std::string_view limits);

}  // namespace muster
