// The way to a host: the program whose stdin and stdout lead to a shell there, and what its failures mean. ssh is one,
// a command of the user's own another. Thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/launch/task/exit_status.h"

namespace muster {

// Why the program has ended before an agent spoke.
struct WayEnd {
  bool again = false;  // it is worth another try at once
  // A sentence that begins with the host and says what to do; "": the way has done its part, and what it ran on the
  // host has ended.
  std::string why;
};

class ContactWay {
 public:
  virtual ~ContactWay() = default;
  // As users read it: "ssh".
  virtual std::string name() const = 0;
  // Returns the words that run FirstContactCommand on the host.
  virtual std::vector<std::string> WordsFor(const std::string& host) const = 0;
  // `errors`: what the program wrote to stderr.
  virtual WayEnd WhyEnded(const std::string& host, const ExitStatus& status, std::string_view errors) const = 0;
};

}  // namespace muster
