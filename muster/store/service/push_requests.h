// Pushes and pulls, of whole variables and of rows: what a ps checks, applies, counts and answers. Lives on the store's
// event loop.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "muster/store/checkpoints/cut_follower.h"
#include "muster/store/gates/gates.h"
#include "muster/store/messages/push_messages.h"
#include "muster/store/messages/row_messages.h"
#include "muster/store/service/buffer_pool.h"
#include "muster/store/service/checkpoint_requests.h"
#include "muster/store/service/incoming_call.h"
#include "muster/store/service/ps_state.h"
#include "muster/store/service/row_requests.h"

namespace muster {

class PushRequests {
 public:
  // All must outlive it.
  PushRequests(PsState& ps, Gates& gates, CutFollower& cut, const CheckpointRequests& checkpoints, BufferPool& buffers)
      : ps_(ps), gates_(gates), cut_(cut), checkpoints_(checkpoints), buffers_(buffers) {}

  // Whether the request may be taken, with that much bulk: asked before the bulk is read.
  [[nodiscard]] absl::Status Check(ConnectionId connection, const PushPullRequest& message, size_t bulk_bytes);
  [[nodiscard]] absl::Status Check(StoreMethod method, ConnectionId connection, const RowsRequest& message,
                                   size_t bulk_bytes);
  // As the handlers of StoreService.
  absl::Status On(const PushPullRequest& message, IncomingCall& call);
  absl::Status On(const RowsRequest& message, IncomingCall& call);
  // Answers a push whose answer a gate has kept back.
  void Answer(const HeldPull& pull, const PushPullReply& pushed, Responder responder);
  // Other values are being loaded.
  void SetKnownStep(int64_t global_step) { known_step_ = global_step; }

  std::vector<uint64_t> Staleness() const;  // of pushes, and of direct updates
  const RowCounts& rows() const { return rows_; }

 private:
  void PushAndAnswer(const PushPullRequest& message, IncomingCall& call);
  PushPullReply ApplyPush(const PushPullRequest& message, ByteSpan bulk, MutableByteSpan pulled);
  void CountNonFinite(const PushPullRequest& message);
  uint64_t CountPush(const PushPullRequest& message, bool new_update);  // returns the updates counted before it
  // With what every answer says; to be sent before the next one is made.
  absl::string_view CompleteReply(const Stamp& stamp, PushPullReply reply);

  PsState& ps_;
  Gates& gates_;
  CutFollower& cut_;
  const CheckpointRequests& checkpoints_;
  BufferPool& buffers_;
  std::string reply_;       // of the last push, for its memory
  int64_t known_step_ = 0;  // not ps 0: the highest global step that a sender knew of
  std::vector<uint64_t> staleness_ = std::vector<uint64_t>(kStalenessCounts);
  RowCounts rows_;
};

}  // namespace muster
