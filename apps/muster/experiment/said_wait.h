// What a job waits for, as `muster train` says it while the log is shown. Not thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace muster {

class SaidWait {
 public:
  // Returns whether this is to be said: it wasn't the last time, or the supervisor has said since then that it waits
  // for hosts, which it says more and more seldom, and can't say why.
  bool IsNews(const std::string& text) { return std::exchange(said_, text) != text; }
  // Takes a line that the supervisor has written.
  void OnSupervisorsLine(std::string_view line) {
    if (line.starts_with(kWaiting)) said_.clear();
  }

 private:
  static constexpr std::string_view kWaiting = "waiting for ";
  std::string said_;
};

}  // namespace muster
