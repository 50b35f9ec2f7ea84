// Makes a forked process one that watches over others: signals don't reach it, it holds none of the descriptors that it
// has inherited, and it has a name of its own. For processes with one thread.
#pragma once

#include <signal.h>

#include <string>
#include <vector>

namespace muster {

// What a process is called, and which signals it has blocked.
struct SavedIdentity {
  std::string command_line;  // the words, each with a zero byte after it
  std::string name;          // of its thread, as ps has it under COMM
  sigset_t blocked;
};

// Returns this process's own.
SavedIdentity OwnIdentity();

// Leads a session of its own, so that the terminal's signals and its closing don't reach it, blocks all signals, is
// called `title`, and closes all descriptors but those in `kept` (which are above 2; -1 is left out). So a reader of a
// pipe into which the process's parent writes sees its end when the parent ends. Unless it needs its environment, a
// long title may be written over that.
void DetachProcess(const std::string& title, std::vector<int> kept, bool needs_environment);

// Gives a process that was forked from a detached one the identity that its ancestor had.
void TakeIdentity(const SavedIdentity& identity);

}  // namespace muster
