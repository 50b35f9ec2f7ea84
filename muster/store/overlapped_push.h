// An update that goes out while it is still being computed: each gradient is pushed as soon as it is final, in parts of
// about StoreClientOptions::part_bytes, and each part brings the new values of its own stripes back, so that sending,
// applying and receiving go on at the same time, on both ends. Messages and steps: docs/store/overlap.md.
//
// Exactly once as every push: all parts have the update's number, and the last one counts it when all are there. Not
// for what needs all gradients first (see Possible): that goes by StoreClient::PushPull. Used by the client's thread.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "muster/store/store_client.h"

namespace muster {

class OverlappedPush {
 public:
  // `client` must outlive it, or be gone before it with nothing under way.
  explicit OverlappedPush(StoreClient& client) : client_(client) {}
  // Gives up what is under way.
  ~OverlappedPush();
  OverlappedPush(const OverlappedPush&) = delete;
  OverlappedPush& operator=(const OverlappedPush&) = delete;

  // Whether updates may be pushed in parts: the ps apply them, the rule needs no norm of all gradients and nobody looks
  // whether they are finite, and there are neither gates nor delay compensation. May change with AwaitReady and with
  // each push.
  bool Possible() const;

  // A new update begins. Only if Possible.
  void Begin();
  // The gradient of that variable is final, stays as it is until Finish or Abandon has returned, and nobody reads the
  // variable any more before that: its new value may come at any time. At most once an update and variable. Doesn't
  // block; moves what bytes can be moved.
  void Ready(size_t variable, ByteSpan gradient);
  // Sends what wasn't Ready, counts one update of one minibatch, and waits for everything, as StoreClient::PushPull
  // with that option; its errors. What it takes is recorded on `track`, this thread's; null: nowhere.
  absl::StatusOr<StorePushResult> Finish(absl::FunctionRef<ByteSpan(size_t)> gradient, bool publish_buffers,
                                         Track* track = nullptr);
  // There will be no rest. What has been sent is applied and stays so, as of a worker that dies in the middle of an
  // update: it counts no step. Tells the ps that nothing more comes.
  void Abandon();

 private:
  // Stripes of one slice of a ps that are to be sent.
  struct Piece {
    size_t slice = 0;
    size_t first_stripe = 0;
    size_t stripes = 0;
    size_t from = 0;  // bytes into the slice
    ByteSpan bytes;
  };
  // What has become of the update at one ps.
  struct Place {
    std::vector<Piece> waiting;  // for a part to be full
    size_t waiting_bytes = 0;
    std::vector<bool> announced;  // by slice: its gradient was given
    std::vector<bool> earlier;    // … and an open part has some of it
    bool opened = false;          // an open part was sent
    bool incomplete = false;      // … and had not arrived when the last part came
    uint64_t oldest_version = 0;  // in all values that were pulled
    uint64_t newest_version = 0;
  };

  void Add(int ps, size_t slice, ByteSpan gradient);
  void AddBuffers(int ps);
  void SendOpen(int ps);
  void SendLast(int ps);
  // message_, with the pieces that wait at that ps: they wait no longer.
  void Send(int ps, absl::Time deadline);
  // Where the answer for that part of a slice goes.
  MutableByteSpan Target(int ps, size_t slice, size_t from, size_t bytes);
  // Everything has been answered: what came narrowed goes into the model.
  void TakeIn();
  void Pump();
  [[nodiscard]] absl::Status AwaitAll();
  [[nodiscard]] absl::Status Absorb(StoreCall& call, StorePushResult& result);
  // Ends the update where it isn't yet.
  [[nodiscard]] absl::Status SendEnds(const std::vector<int>& places, UpdatePart part, uint32_t minibatches,
                                      StorePushResult& result);
  void AddEarlier(int ps, std::vector<uint32_t>& earlier) const;
  void Forget();

  StoreClient& client_;
  uint64_t sequence_ = 0;  // of the update that is under way; 0: nothing of it was sent
  std::vector<Place> places_;
  PushPullRequest message_;      // that is being made
  std::deque<StoreCall> calls_;  // they don't move while they are in flight; kept for their memory
  size_t used_calls_ = 0;        // of this update
  int unanswered_ = 0;
};

}  // namespace muster
