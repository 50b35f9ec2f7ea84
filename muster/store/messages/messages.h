// All control messages between the store and its clients, and how they are written and read. Bulk bytes travel beside
// them. Plain values.
#pragma once

#include "muster/store/messages/barrier_messages.h"
#include "muster/store/messages/checkpoint_messages.h"
#include "muster/store/messages/clock_messages.h"
#include "muster/store/messages/cut_messages.h"
#include "muster/store/messages/direct_messages.h"
#include "muster/store/messages/load_messages.h"
#include "muster/store/messages/membership_messages.h"
#include "muster/store/messages/model_messages.h"
#include "muster/store/messages/push_messages.h"
#include "muster/store/messages/queue_messages.h"
#include "muster/store/messages/row_messages.h"
#include "muster/store/messages/store_methods.h"
#include "muster/store/messages/turn_messages.h"
#include "muster/store/messages/work_messages.h"
#include "muster/transport/messages/codec.h"

namespace muster {

// Calls visit.operator()<Message>() for each message that is written as a whole; for one that several methods share,
// several times.
template <typename Visit>
void ForEachStoreMessage(const Visit& visit) {
#define MUSTER_VISIT(number, method, name, Request, Reply) \
  visit.template operator()<Request>();                    \
  visit.template operator()<Reply>();
  MUSTER_STORE_METHODS(MUSTER_VISIT)
#undef MUSTER_VISIT
  visit.template operator()<StoreModel>();
  visit.template operator()<WorkState>();
}

}  // namespace muster
