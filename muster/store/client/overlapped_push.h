// An update that is sent while it is still being computed: each gradient is pushed as soon as it is final, in parts of
// about StoreClientOptions::part_bytes, and each part brings back the new values of its stripes, so that both ends
// send, apply and receive at the same time. Messages and steps: docs/store/overlap.md.
//
// Exactly once like every push: all parts have the update's number, and the last one counts it when all have arrived.
// An update that needs all gradients first (see Possible) goes through StoreClient::PushPull instead. Used by the
// client's thread.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "muster/store/client/store_client.h"

namespace muster {

class OverlappedPush {
 public:
  // `client` must outlive it, or be gone first with nothing under way.
  explicit OverlappedPush(StoreClient& client) : client_(client) {}
  // Abandons an update that is under way.
  ~OverlappedPush();
  OverlappedPush(const OverlappedPush&) = delete;
  OverlappedPush& operator=(const OverlappedPush&) = delete;

  // Whether updates may be pushed in parts: the ps apply them, the rule needs no norm of all gradients nor a check that
  // they are finite, and there are neither gates nor delay compensation. May change with AwaitReady and with each push.
  bool Possible() const;

  // Begins a new update. Only if Possible.
  void Begin();
  // The gradient of that variable is final and stays as it is until Finish or Abandon has returned; nobody may read the
  // variable before that, because its new value may come at any time. At most once per update and variable. Moves what
  // bytes can be moved, without blocking.
  void Ready(size_t variable, ByteSpan gradient);
  // Sends what wasn't Ready, counts one update of one minibatch, and waits for all answers, as StoreClient::PushPull
  // with that option; same errors. Its times are recorded on `track`, this thread's; null: nowhere.
  absl::StatusOr<StorePushResult> Finish(absl::FunctionRef<ByteSpan(size_t)> gradient, bool publish_buffers,
                                         Track* track = nullptr);
  // Gives the update up. What was sent is applied and stays so, as when a worker dies in the middle of an update: it
  // counts no step. Tells the ps that nothing more comes.
  void Abandon();

 private:
  // Stripes of one slice of a ps, to be sent.
  struct Piece {
    size_t slice = 0;
    size_t first_stripe = 0;
    size_t stripes = 0;
    size_t from = 0;  // bytes into the slice
    ByteSpan bytes;
  };
  // State of the update at one ps.
  struct Place {
    std::vector<Piece> waiting;  // until a part is full
    size_t waiting_bytes = 0;
    std::vector<bool> announced;  // by slice: its gradient was given
    std::vector<bool> earlier;    // by slice: an open part has some of it
    bool opened = false;          // an open part was sent
    bool incomplete = false;      // an open part had not arrived when the last part came
    uint64_t oldest_version = 0;  // of all pulled values
    uint64_t newest_version = 0;
  };

  void Add(int ps, size_t slice, ByteSpan gradient);
  void AddBuffers(int ps);
  void SendOpen(int ps);
  void SendLast(int ps);
  // Sends message_ with the pieces that wait for that ps.
  void Send(int ps, absl::Time deadline);
  // Returns where the answer for that part of a slice goes.
  MutableByteSpan Target(int ps, size_t slice, size_t from, size_t bytes);
  // Everything has been answered: widens narrowed values into the model.
  void TakeIn();
  void Pump();
  [[nodiscard]] absl::Status AwaitAll();
  [[nodiscard]] absl::Status Absorb(StoreCall& call, StorePushResult& result);
  // Ends the update on the ps where it hasn't ended yet.
  [[nodiscard]] absl::Status SendEnds(const std::vector<int>& places, UpdatePart part, uint32_t minibatches,
                                      StorePushResult& result);
  void AddEarlier(int ps, std::vector<uint32_t>& earlier) const;
  void Forget();

  StoreClient& client_;
  uint64_t sequence_ = 0;  // of the current update; 0: nothing of it was sent
  std::vector<Place> places_;
  PushPullRequest message_;      // being built
  std::deque<StoreCall> calls_;  // don't move while they are in flight; kept for their memory
  size_t used_calls_ = 0;        // for this update
  int unanswered_ = 0;
};

}  // namespace muster
