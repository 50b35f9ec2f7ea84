// One request of a StoreClient to one ps and, in the end, its answer. Plain values.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/bytes.h"
#include "muster/store/messages/messages.h"
#include "muster/transport/channel.h"

namespace muster {

// A silence that is worth a line in the log: a ps that is being started takes less.
constexpr absl::Duration kSilenceBeforeNotice = absl::Seconds(5);

struct StoreCall {
  int ps = 0;
  StoreMethod method{};
  std::string control;
  Segments bulk;             // must stay until the answer is there
  MutableSegments into;      // likewise
  bool narrow_pull = false;  // `into` is a WireStaging's
  absl::StatusOr<Reply> answer = absl::UnknownError("not answered");
  // The client's own.
  absl::Time deadline;
  int* unanswered = nullptr;  // of the exchange that it is in
  int attempts = 0;
  std::optional<Channel::CallId> in_flight;
  bool send_again = true;  // when the connection breaks

  // Another request in the same memory.
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
