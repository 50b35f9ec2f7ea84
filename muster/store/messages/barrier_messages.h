// The question of a process that waits for others at a barrier. Plain values.
#pragma once

#include <cstdint>
#include <string>

#include "muster/store/messages/stamp.h"
#include "muster/transport/messages/fields.h"

namespace muster {

// Answered when `parties` different clients have arrived at the barrier `name`; elastic: or all that are there.
struct BarrierRequest {
  Stamp stamp;
  std::string name;
  uint32_t parties = 0;
  bool elastic = false;

  using Fields = FieldList<Field<1, &BarrierRequest::stamp>, Field<2, &BarrierRequest::name>,
                           Field<3, &BarrierRequest::parties>, Field<4, &BarrierRequest::elastic>>;
};

}  // namespace muster
