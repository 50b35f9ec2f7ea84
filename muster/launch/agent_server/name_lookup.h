// Looks a host's name up in another process, since a resolver may let it wait for half a minute, and an agent has tasks
// to attend to meanwhile. Used by the loop's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/launch/system/fd_loop.h"
#include "muster/launch/system/piped_program.h"

namespace muster {

class NameLookup {
 public:
  // Runs `command` with `host` behind it, which prints an address in digits on each line ("10.0.0.3:1", the port means
  // nothing), or says why not on stderr. `done` is called once, from the loop, with the addresses: Unavailable has that
  // reason. Borrows `loop`, which must outlive it. The errors of PipedProgram::Start.
  static absl::StatusOr<std::unique_ptr<NameLookup>> Start(
      std::vector<std::string> command, const std::string& host, FdLoop& loop,
      std::function<void(absl::StatusOr<std::vector<std::string>>)> done);
  // Ends the program.
  ~NameLookup();
  NameLookup(const NameLookup&) = delete;
  NameLookup& operator=(const NameLookup&) = delete;

 private:
  NameLookup(PipedProgram program, FdLoop& loop, std::function<void(absl::StatusOr<std::vector<std::string>>)> done);
  void OnEnd();

  FdLoop& loop_;
  PipedProgram program_;
  const std::function<void(absl::StatusOr<std::vector<std::string>>)> done_;
};

}  // namespace muster
