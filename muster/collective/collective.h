// What the ranks of a group do together on their memory, without a server: reduce, scatter, gather, broadcast. Every
// rank calls the same operations in the same order; each call blocks until this rank's part is done. Implementations:
// shm/ (all ranks on one host), ring/ (TCP); JoinGroup (join_group.h) picks one. Steps and bytes: docs/collectives.md.
//
// A sum is the same in every bit on all ranks and in every run with as many ranks: each element is added up by one
// rank, always in the same order (which one, the implementation says), and the others copy it. Halves are added up as
// floats and rounded once.
//
// Errors of all operations; none is a hang, and after any of them the group is of no use any more, every later call
// says the same:
//   Unavailable       a rank has died or was given up: named
//   Cancelled         a rank has left in order (Leave): training is over there
//   DeadlineExceeded  a rank hasn't come to this operation: named
//   InvalidArgument   another rank has called something else, or with other sizes: both are named. Or spans that can't
//                     be meant; nothing was touched then, and the group is as before
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
  virtual ~Collective() = default;  // without Leave: to the others this rank has died

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // "shm", "ring".
  virtual std::string kind() const = 0;

  // Memory is lists of segments, read and written as if they were one piece; a segment holds whole elements.
  // `dtype`: one of the floating-point types. `out` may be the very memory of `in` (the same segments), or apart from
  // it. Until the call returns, whatever it returns, both belong to it.

  // out ← the sum (mean) over all ranks of in.
  [[nodiscard]] virtual absl::Status AllReduce(const Segments& in, const MutableSegments& out, DType dtype,
                                               Reduction reduction, absl::Time deadline) = 0;
  // The same, of which this rank gets its share (ShareOf) alone. `out` apart from `in`.
  [[nodiscard]] virtual absl::Status ReduceScatter(const Segments& in, const MutableSegments& out, DType dtype,
                                                   Reduction reduction, absl::Time deadline) = 0;
  // out ← the shares of all ranks, one after the other; `in` is this rank's. Any bytes.
  [[nodiscard]] virtual absl::Status AllGather(const Segments& in, const MutableSegments& out, size_t element_bytes,
                                               absl::Time deadline) = 0;
  // data ← that of rank `root`. Any bytes.
  [[nodiscard]] virtual absl::Status Broadcast(const MutableSegments& data, int root, absl::Time deadline) = 0;
  // Nobody returns before all have come.
  [[nodiscard]] virtual absl::Status Barrier(absl::Time deadline) = 0;

  // In order: the others' next operation ends with Cancelled. No operation may follow.
  virtual void Leave() = 0;

  // Told whom an operation waits for, by the thread that called it: once it has waited kWorthAWord, about every second
  // from there on, and with nobody ("") when it waits no more; `ended` is then an error if nobody has come. On a ring
  // `whom` is a neighbour, who may wait himself.
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
