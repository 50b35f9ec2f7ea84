// Logs for which ps an exchange waits, and why: the address that is tried and the last error, or, where the ps holds
// the answer back until the chief has brought the model, what that ps knows of the chief. It is one line for all ps,
// as often as WaitNotices says. Used by the client's thread.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/base/wait_notices.h"
#include "muster/store/calls/store_call.h"

namespace muster {

class PsCalls;

class SilenceNotice {
 public:
  // The wait begins now, for the answers to `calls`, and ends at `deadline`. Both borrowed objects must outlive it.
  SilenceNotice(PsCalls& ps_calls, const std::vector<StoreCall>& calls, absl::Time deadline);

  absl::Time next() const { return notices_.next(); }
  // Writes the line if it is due. Asks a ps about the chief, for at most 2 s.
  void Check();

 private:
  std::string Whom() const;
  std::string ChiefAccordingTo(int ps) const;

  PsCalls& ps_calls_;
  const std::vector<StoreCall>& calls_;
  const absl::Time deadline_;
  WaitNotices notices_;
};

}  // namespace muster
