// One request of a StoreClient to one ps and, later, its answer. Plain values.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/bytes.h"
#include "muster/store/messages/messages.h"
#include "muster/transport/channel.h"

namespace muster {

// A silence worth a line in the log: longer than a ps takes to start.
constexpr absl::Duration kSilenceBeforeNotice = absl::Seconds(5);

struct StoreCall {
  int ps = 0;
  StoreMethod method{};
  std::string control;
  Segments bulk;             // must stay valid until the answer is there
  MutableSegments into;      // likewise
  bool narrow_pull = false;  // `into` is a WireStaging's
  absl::StatusOr<Reply> answer = absl::UnknownError("not answered");
  // Used by the client only.
  absl::Time deadline;
  int* unanswered = nullptr;  // counter of the exchange that it belongs to
  int attempts = 0;
  std::optional<Channel::CallId> in_flight;
  bool send_again = true;  // when the connection breaks

  // Reuses the memory for another request.
  void BeginAgain(int to, StoreMethod what) {
    ps = to;
    method = what;
    bulk.clear();
    into.clear();
    narrow_pull = false;
    attempts = 0;
  }
};

}  // namespace muster
