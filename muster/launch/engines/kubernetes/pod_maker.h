// Makes lost pods of agents again, for a supervisor whose job names a service account. An interface, so that a test
// needs no API.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"

namespace muster {

class PodMaker {
 public:
  virtual ~PodMaker() = default;
  // Makes the pod of this host again, for the `number`-th time from 1, unless the one before still runs. Doesn't block:
  // `done` is called once, from the loop, with the API's words if it can't be made; only the newest call of a host is
  // answered.
  virtual void Make(const std::string& host, int number, std::function<void(absl::Status)> done) = 0;
};

}  // namespace muster
