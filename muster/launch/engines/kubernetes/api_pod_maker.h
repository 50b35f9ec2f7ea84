// Makes pods again by another process of this program, `muster agent --make_pod HOST`, as the API may be slow and the
// supervisor has agents to hear. Used by the loop's thread.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "muster/launch/engines/kubernetes/pod_maker.h"
#include "muster/launch/system/fd_loop.h"
#include "muster/launch/system/piped_program.h"

namespace muster {

class ApiPodMaker final : public PodMaker {
 public:
  // Runs `command` with the host's name behind it, in `environment` ("NAME=VALUE"). Borrows `loop`, which must outlive
  // it.
  ApiPodMaker(std::vector<std::string> environment, FdLoop& loop,
              std::vector<std::string> command = {"/proc/self/exe", "agent", "--make_pod"});
  // Ends the programs that run.
  ~ApiPodMaker() override;

  void Make(const std::string& host, int number, std::function<void(absl::Status)> done) override;

 private:
  void OnEnd(const std::string& host, const std::function<void(absl::Status)>& done);
  void Drop(const std::string& host);

  const std::vector<std::string> environment_;
  const std::vector<std::string> command_;
  FdLoop& loop_;
  std::map<std::string, PipedProgram> running_;  // by host
};

}  // namespace muster
