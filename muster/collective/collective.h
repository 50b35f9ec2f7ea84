// Operations of a group's ranks on their memory, without a server: reduce, scatter, gather, broadcast. Every rank calls
// the same operations in the same order; each call blocks until this rank's part is done. Implementations: shm/ (all
// ranks on one host), ring/ (TCP); JoinGroup (join_group.h) picks one. Steps and bytes: docs/collectives.md.
//
// A sum has the same bits on all ranks and in every run with as many ranks: one rank adds up each element, always in
// the same order (the implementation says which), and the others copy the result. Halves are added up as floats and
// rounded once.
//
// Errors of all operations. None of them is a hang. After any of them the group is unusable: every later call returns
// the same error.
//   Unavailable       a rank has died or was given up; the message names it
//   Cancelled         a rank has left in order (Leave): training is over there
//   DeadlineExceeded  a rank hasn't come to this operation; the message names it
//   InvalidArgument   another rank has called something else, or with other sizes; the message names both. Or the spans
//                     are invalid; then nothing was touched, and the group can still be used
//
// Used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/bytes.h"
#include "muster/base/dtype.h"

namespace muster {

enum class Reduction : uint8_t { kSum = 1, kMean = 2 };

class Collective {
 public:
  virtual ~Collective() = default;  // without Leave, the others see a rank that died

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Returns "shm" or "ring".
  virtual std::string kind() const = 0;

  // Memory is a list of segments, read and written as if they were one piece; a segment holds whole elements. `dtype`
  // is a floating-point type. `out` may be the very memory of `in` (the same segments), or separate from it. Both are
  // borrowed until the call returns, whatever it returns.

  // out ← the sum (mean) of in over all ranks.
  [[nodiscard]] virtual absl::Status AllReduce(const Segments& in, const MutableSegments& out, DType dtype,
                                               Reduction reduction, absl::Time deadline) = 0;
  // Computes the same, but this rank gets only its share (ShareOf). `out` must be separate from `in`.
  [[nodiscard]] virtual absl::Status ReduceScatter(const Segments& in, const MutableSegments& out, DType dtype,
                                                   Reduction reduction, absl::Time deadline) = 0;
  // out ← the shares of all ranks, one after the other; `in` is this rank's share. Any bytes.
  [[nodiscard]] virtual absl::Status AllGather(const Segments& in, const MutableSegments& out, size_t element_bytes,
                                               absl::Time deadline) = 0;
  // data ← the data of rank `root`. Any bytes.
  [[nodiscard]] virtual absl::Status Broadcast(const MutableSegments& data, int root, absl::Time deadline) = 0;
  // Returns on no rank before all ranks have come.
  [[nodiscard]] virtual absl::Status Barrier(absl::Time deadline) = 0;

  // Leaves in order: the others' next operation ends with Cancelled. No operation may follow.
  virtual void Leave() = 0;

  // Sets a callback that reports long waits, on the thread that called the operation: with the awaited rank's name once
  // a wait has lasted kWorthAWord, about every second from then on, and with "" when it ends; `ended` is then an error
  // if the rank hasn't come. On a ring `whom` is a neighbour, which may itself be waiting.
  using OnWait = std::function<void(const std::string& whom, absl::Duration waited, const absl::Status& ended)>;
  void SetOnWait(OnWait on_wait) { on_wait_ = std::move(on_wait); }

 protected:
  static constexpr absl::Duration kWorthAWord = absl::Milliseconds(100);
  static constexpr absl::Duration kBetweenWords = absl::Seconds(1);
  void TellWait(const std::string& whom, absl::Duration waited) const {
    if (on_wait_) on_wait_(whom, waited, absl::OkStatus());
  }
  void TellWaitEnded(const absl::Status& ended) const {
    if (on_wait_) on_wait_("", absl::ZeroDuration(), ended);
  }

 private:
  OnWait on_wait_;
};

}  // namespace muster
