// What a StoreClient has under way: included by its own files only.
#pragma once

#include <optional>
#include <string>

#include "muster/store/store_client.h"

namespace muster {

// One request to one ps and, in the end, its answer.
struct StoreClient::Outgoing {
  int ps = 0;
  StoreMethod method{};
  std::string control;
  Segments bulk;
  MutableSegments into;
  absl::StatusOr<Reply> answer = absl::UnknownError("not answered");
  int attempts = 0;
  std::optional<Channel::CallId> in_flight;
  bool send_again = true;  // when the connection breaks
};

}  // namespace muster
