#include "muster/collective/shm/shm_collective.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/clock.h"
#include "muster/base/status_macros.h"
#include "muster/collective/checked_call.h"
#include "muster/collective/rank_sum.h"
#include "muster/collective/segment_range.h"
#include "muster/collective/share.h"

namespace muster {
namespace {

// How long a rank sleeps before it checks whether the awaited ranks still exist. After kLong it waits for a slow rank
// and checks less often: a count wakes it anyway; only a death doesn't.
constexpr absl::Duration kShortSlice = absl::Milliseconds(5);
constexpr absl::Duration kLong = absl::Milliseconds(100);
constexpr absl::Duration kLongSlice = absl::Milliseconds(50);

// The part of each share that belongs to a chunk.
class Pieces {
 public:
  Pieces(size_t elements, size_t element_bytes, int size, size_t piece_bytes)
      : elements_(elements),
        element_bytes_(element_bytes),
        size_(size),
        piece_elements_(std::max<size_t>(1, piece_bytes / element_bytes)) {}

  // At least one, because all ranks come to every operation.
  size_t chunks() const {
    return std::max<size_t>(1, (ShareOf(elements_, 0, size_).elements + piece_elements_ - 1) / piece_elements_);
  }
  struct Range {
    size_t begin = 0;  // bytes
    size_t bytes = 0;
  };
  Range At(int share, size_t chunk) const {
    const Share whole = ShareOf(elements_, share, size_);
    const size_t from = std::min(whole.elements, chunk * piece_elements_);
    const size_t some = std::min(piece_elements_, whole.elements - from);
    return {(whole.begin + from) * element_bytes_, some * element_bytes_};
  }
  size_t ShareBegin(int share) const { return ShareOf(elements_, share, size_).begin * element_bytes_; }

 private:
  const size_t elements_;
  const size_t element_bytes_;
  const int size_;
  const size_t piece_elements_;
};

}  // namespace

ShmCollective::ShmCollective(std::unique_ptr<ShmMember> member, std::vector<std::string> names, int processors)
    : member_(std::move(member)),
      names_(std::move(names)),
      rank_(member_->rank()),
      size_(member_->layout().size()),
      short_wait_(ShortWaitFor(size_, processors)),
      contributions_(names_.size()) {
  MUSTER_CHECK(static_cast<int>(names_.size()) == size_);
}

absl::Status ShmCollective::AllReduce(const Segments& in, const MutableSegments& out, DType dtype, Reduction reduction,
                                      absl::Time deadline) {
  ASSIGN_OR_RETURN(const CollectiveCall call, CallOfAllReduce(in, out, dtype, reduction));
  return Reduce(call, in, out, /*out_begin=*/0, /*take=*/true, deadline);
}

absl::Status ShmCollective::ReduceScatter(const Segments& in, const MutableSegments& out, DType dtype,
                                          Reduction reduction, absl::Time deadline) {
  ASSIGN_OR_RETURN(const CollectiveCall call, CallOfReduceScatter(in, out, dtype, reduction, rank_, size_));
  const size_t begin = ShareOf(call.bytes / DTypeSize(dtype), rank_, size_).begin * DTypeSize(dtype);
  return Reduce(call, in, out, begin, /*take=*/false, deadline);
}

absl::Status ShmCollective::Reduce(const CollectiveCall& call, const Segments& in, const MutableSegments& out,
                                   size_t out_begin, bool take, absl::Time deadline) {
  const auto dtype = static_cast<DType>(call.dtype);
  const size_t element = DTypeSize(dtype);
  const Pieces pieces(call.bytes / element, element, size_, member_->layout().piece_bytes());
  const auto fill = [&](size_t chunk) {
    for (int share = 0; share < size_; ++share) {
      if (share == rank_) continue;
      const auto [begin, bytes] = pieces.At(share, chunk);
      CopyOut(in, begin, bytes, Piece(rank_, chunk, share));
    }
  };
  const auto reduce = [&](size_t chunk) {
    const auto [begin, bytes] = pieces.At(rank_, chunk);
    size_t done = 0;
    VisitBoth(in, begin, out, begin - out_begin, bytes, [&](ByteSpan mine, std::byte* to) {
      for (int other = 0; other < size_; ++other)
        contributions_[other] = other == rank_ ? mine.data() : Piece(other, chunk, rank_) + done;
      SumOfRanks(dtype, static_cast<Reduction>(call.reduction), contributions_, mine.size() / element,
                 take ? Piece(rank_, chunk, rank_) + done : nullptr, to);
      done += mine.size();
    });
  };
  const auto take_sums = [&](size_t chunk) {
    for (int share = 0; take && share < size_; ++share) {
      if (share == rank_) continue;
      const auto [begin, bytes] = pieces.At(share, chunk);
      CopyIn(Piece(share, chunk, share), out, begin, bytes);
    }
  };
  return Run(call, pieces.chunks(), {fill, reduce, take_sums}, deadline);
}

absl::Status ShmCollective::AllGather(const Segments& in, const MutableSegments& out, size_t element_bytes,
                                      absl::Time deadline) {
  ASSIGN_OR_RETURN(const CollectiveCall call, CallOfAllGather(in, out, element_bytes, rank_, size_));
  const Pieces pieces(call.bytes / element_bytes, element_bytes, size_, member_->layout().piece_bytes());
  if (element_bytes > member_->layout().piece_bytes())
    return absl::InvalidArgumentError(absl::StrCat("elements of ", element_bytes, " bytes; accepted: up to ",
                                                   member_->layout().piece_bytes(), ". Give a divisor of it"));
  const auto publish = [&](size_t chunk) {
    const auto [begin, bytes] = pieces.At(rank_, chunk);
    size_t done = 0;
    VisitRange(in, begin - pieces.ShareBegin(rank_), bytes, [&](ByteSpan piece) {
      std::memcpy(Piece(rank_, chunk, rank_) + done, piece.data(), piece.size());
      done += piece.size();
    });
    CopyIn(Piece(rank_, chunk, rank_), out, begin, bytes);
  };
  const auto take = [&](size_t chunk) {
    for (int share = 0; share < size_; ++share) {
      if (share == rank_) continue;
      const auto [begin, bytes] = pieces.At(share, chunk);
      CopyIn(Piece(share, chunk, share), out, begin, bytes);
    }
  };
  return Run(call, pieces.chunks(), {[](size_t) {}, publish, take}, deadline);
}

absl::Status ShmCollective::Broadcast(const MutableSegments& data, int root, absl::Time deadline) {
  ASSIGN_OR_RETURN(const CollectiveCall call, CallOfBroadcast(data, root, size_));
  // The root's whole slot is one piece.
  const Pieces pieces(call.bytes, 1, 1, member_->layout().slot_bytes());
  const Segments from = ReadOnly(data);
  const auto publish = [&](size_t chunk) {
    const auto [begin, some] = pieces.At(0, chunk);
    if (rank_ == root) CopyOut(from, begin, some, Piece(root, chunk, 0));
  };
  const auto take = [&](size_t chunk) {
    const auto [begin, some] = pieces.At(0, chunk);
    if (rank_ != root) CopyIn(Piece(root, chunk, 0), data, begin, some);
  };
  return Run(call, pieces.chunks(), {[](size_t) {}, publish, take}, deadline);
}

absl::Status ShmCollective::Barrier(absl::Time deadline) {
  const auto nothing = [](size_t) {};
  return Run({.operation = CollectiveOperation::kBarrier}, 1, {nothing, nothing, nothing}, deadline);
}

// A chunk is filled while the previous one is added up and the one before that is taken, so that a slightly late rank
// delays nobody. Why no slot is written while another rank reads it: docs/collectives.md.
absl::Status ShmCollective::Run(const CollectiveCall& call, size_t chunks, const Steps& steps, absl::Time deadline) {
  RETURN_IF_ERROR(failure_);
  ShmLane& mine = member_->lane(rank_);
  mine.calls[calls_ % 2] = call;
  for (size_t i = 0; i < chunks + 2; ++i) {
    if (i < chunks) {
      steps.fill(i);
      CountTo(mine.filled, Count(i + 1));
    }
    if (i >= 1 && i <= chunks) {
      const uint32_t count = Count(i);
      RETURN_IF_ERROR(AwaitAll(&ShmLane::filled, count, deadline));
      if (i == 1) {
        if (absl::Status same = CompareCalls(); !same.ok()) return GiveUp(std::move(same), rank_);
      }
      steps.reduce(i - 1);
      CountTo(mine.reduced, count);
    }
    if (i >= 2) {
      RETURN_IF_ERROR(AwaitAll(&ShmLane::reduced, Count(i - 1), deadline));
      steps.take(i - 2);
    }
  }
  first_chunk_ += chunks;
  ++calls_;
  return absl::OkStatus();
}

absl::Status ShmCollective::AwaitAll(ShmCounter ShmLane::*counter, uint32_t chunks, absl::Time deadline) {
  for (int rank = 0; rank < size_; ++rank) {
    ShmCounter& word = member_->lane(rank).*counter;
    if (rank == rank_ || AwaitBriefly(word, chunks, short_wait_)) continue;
    RETURN_IF_ERROR(Await(rank, word, chunks, deadline));
  }
  return absl::OkStatus();
}

absl::Status ShmCollective::Await(int rank, ShmCounter& counter, uint32_t chunks, absl::Time deadline) {
  bool told = false;
  absl::Status status = AwaitLong(rank, counter, chunks, deadline, told);
  if (told) TellWaitEnded(status);
  return status;
}

absl::Status ShmCollective::AwaitLong(int rank, ShmCounter& counter, uint32_t chunks, absl::Time deadline, bool& told) {
  const absl::Time began = RealClock().Now();
  absl::Time next_word = began + kWorthAWord;
  for (absl::Time now = began;; now = RealClock().Now()) {
    const absl::Duration left = deadline - now;
    if (left <= absl::ZeroDuration() && !HasCounted(counter, chunks))
      return GiveUp(absl::DeadlineExceededError(
                        absl::StrCat(names_[rank], " hasn't come to operation ", calls_ + 1, " of the group in time")),
                    rank);
    const absl::Duration slice = now - began < kLong ? kShortSlice : kLongSlice;
    if (AwaitAsleep(counter, chunks, std::max(absl::ZeroDuration(), std::min(left, slice)))) return absl::OkStatus();
    if (now >= next_word) {
      TellWait(names_[rank], now - began);
      told = true;
      next_word = now + kBetweenWords;
    }
    int missing = rank;
    absl::Status why = WhyMissing(rank, missing);
    if (!why.ok() && !HasCounted(counter, chunks)) return GiveUp(std::move(why), missing);
  }
}

absl::Status ShmCollective::WhyMissing(int rank, int& missing) const {
  const auto presence_of = [this](int other) {
    return static_cast<ShmPresence>(std::atomic_ref(member_->lane(other).presence).load());
  };
  const std::vector<int> ended = member_->Ended();
  for (const int dead : ended) {
    if (presence_of(dead) != ShmPresence::kHere) continue;
    missing = dead;
    return absl::UnavailableError(absl::StrCat(names_[dead], " has died, or failed, in the middle of training"));
  }
  // No rank died silently. A rank that has given up says which rank it blames, and may have ended since.
  const auto given_up = [&](int other) {
    if (presence_of(other) != ShmPresence::kGivenUp) return absl::OkStatus();
    missing = static_cast<int>(std::min<uint32_t>(std::atomic_ref(member_->lane(other).missing).load(), size_ - 1));
    return absl::UnavailableError(
        absl::StrCat(names_[missing], " is missing: ", names_[other], " has given up the group"));
  };
  for (const int other : ended) RETURN_IF_ERROR(given_up(other));
  RETURN_IF_ERROR(given_up(rank));
  if (presence_of(rank) == ShmPresence::kLeft)
    return absl::CancelledError(absl::StrCat(names_[rank], " has ended its training"));
  return absl::OkStatus();
}

// All compare with rank 0, so that all report the same.
absl::Status ShmCollective::CompareCalls() const {
  const CollectiveCall& first = member_->lane(0).calls[calls_ % 2];
  for (int rank = 1; rank < size_; ++rank) {
    const CollectiveCall& other = member_->lane(rank).calls[calls_ % 2];
    if (other == first) continue;
    return absl::InvalidArgumentError(DescribeDifference(names_[0], first, names_[rank], other));
  }
  return absl::OkStatus();
}

absl::Status ShmCollective::GiveUp(absl::Status status, int missing) {
  failure_ = std::move(status);
  Say(absl::IsCancelled(failure_) ? ShmPresence::kLeft : ShmPresence::kGivenUp, missing);
  return failure_;
}

void ShmCollective::Leave() {
  if (!failure_.ok()) return;
  failure_ = absl::FailedPreconditionError("this rank has left the group");
  Say(ShmPresence::kLeft, rank_);
}

void ShmCollective::Say(ShmPresence presence, int missing) {
  ShmLane& mine = member_->lane(rank_);
  std::atomic_ref(mine.missing).store(static_cast<uint32_t>(missing));
  std::atomic_ref(mine.presence).store(static_cast<uint32_t>(presence));
  WakeAll(mine.filled);
  WakeAll(mine.reduced);
}

}  // namespace muster
