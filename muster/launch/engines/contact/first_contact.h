// What is said on a new connection to a shell of a host before the agent's frames: which muster to run, and whether it
// has to be copied first. One connection does all of it, so reaching a host costs one login. A state machine over
// bytes; not thread-safe.
//
//   here → host    "HASH SIZE JOB GRACE\n" (GRACE: seconds)
//   host → here    "muster-start\n", and the agent's frames follow; or, if there is no muster of this hash,
//                  "muster-send SYSTEM MACHINE LIBC\n" (Linux x86_64 glibc_2.36)
//   here → host    SIZE bytes of the file, or the end of the stream if it can't run there
//   host → here    "muster-start\n", or "muster-failed\n" after what went wrong on stderr
//
// Lines that come before (a banner that a shell prints) are kept for the user and otherwise skipped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "muster/launch/system/host_system.h"

namespace muster {

// The muster that shall run on a host, by content.
struct MusterFile {
  std::string hash;  // SHA-256 in hex; also the name of its folder on the host
  uint64_t bytes = 0;
};

// Describes the program whose bytes these are.
MusterFile MusterFileOf(std::string_view program);

// What the next command exits with where that muster isn't.
inline constexpr int kNoMusterThere = 251;
// Returns a command for the login shell of a host that has been in contact: this muster, with these words and one more
// variable in its environment. Fish and csh read '\\', '!' and line breaks within quotes, so words must have none.
std::string OwnCommandThere(const MusterFile& muster, const std::pair<std::string, std::string>& variable,
                            const std::vector<std::string>& words);

// Returns the command for the login shell of the host: plain POSIX sh, the same for all jobs, without characters that
// bash, zsh, fish or csh read differently within single quotes.
std::string FirstContactCommand();
// Returns the same as the words of a program, for a way that has no shell of its own there: sh -c SCRIPT.
std::vector<std::string> FirstContactWords();

// Returns the first line for the host. `job` has letters, digits and '-' only. `grace`: how long the agent goes on
// without a supervisor, in whole seconds.
std::string FirstContactLine(const MusterFile& muster, const std::string& job, absl::Duration grace);

class FirstContact {
 public:
  enum class State {
    kWaiting,   // nothing decided
    kSend,      // the host wants the file; see system()
    kStarted,   // what Take has left over is the agent's
    kFailed,    // the host couldn't keep the file
    kNoMuster,  // something else talks: more than kMostBanner bytes without a word of ours
  };
  static constexpr size_t kMostBanner = 64 << 10;

  // Takes bytes from the host and returns how many it has used: all, unless the state becomes kStarted.
  size_t Take(std::string_view bytes);
  State state() const { return state_; }
  const HostSystem& system() const { return system_; }
  // What was printed that isn't ours.
  const std::string& banner() const { return banner_; }

 private:
  void TakeLine(std::string_view line);

  State state_ = State::kWaiting;
  HostSystem system_;
  std::string line_;  // unfinished
  std::string banner_;
};

}  // namespace muster
