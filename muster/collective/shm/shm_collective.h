// A Collective among the processes of one host, through shared memory. Each rank provides its contribution chunk by
// chunk, adds up its own share of every chunk, always in the order of the ranks, and copies the other ranks' shares
// (docs/collectives.md, "Shared memory"). A rank's own share leaves private memory only as a sum, and slots are small
// enough to stay in the processor's caches: the limit is the speed of private memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "muster/collective/collective.h"
#include "muster/collective/shm/shm_member.h"
#include "muster/collective/shm/shm_wait.h"

namespace muster {

class ShmCollective final : public Collective {
 public:
  // `names`: of all ranks, for messages. `processors`: that the ranks may use together.
  ShmCollective(std::unique_ptr<ShmMember> member, std::vector<std::string> names, int processors);

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string kind() const override { return "shm"; }

  [[nodiscard]] absl::Status AllReduce(const Segments& in, const MutableSegments& out, DType dtype, Reduction reduction,
                                       absl::Time deadline) override;
  [[nodiscard]] absl::Status ReduceScatter(const Segments& in, const MutableSegments& out, DType dtype,
                                           Reduction reduction, absl::Time deadline) override;
  [[nodiscard]] absl::Status AllGather(const Segments& in, const MutableSegments& out, size_t element_bytes,
                                       absl::Time deadline) override;
  [[nodiscard]] absl::Status Broadcast(const MutableSegments& data, int root, absl::Time deadline) override;
  [[nodiscard]] absl::Status Barrier(absl::Time deadline) override;
  void Leave() override;

 private:
  // The steps for one chunk. All ranks take each step before any takes the next one of that chunk. `fill` writes what
  // other ranks add up, `reduce` what they take.
  struct Steps {
    absl::FunctionRef<void(size_t chunk)> fill;
    absl::FunctionRef<void(size_t chunk)> reduce;
    absl::FunctionRef<void(size_t chunk)> take;
  };

  [[nodiscard]] absl::Status Run(const CollectiveCall& call, size_t chunks, const Steps& steps, absl::Time deadline);
  // Fills from, and adds up, shares of `in`; `out` begins `out_begin` bytes into the whole sum.
  [[nodiscard]] absl::Status Reduce(const CollectiveCall& call, const Segments& in, const MutableSegments& out,
                                    size_t out_begin, bool take, absl::Time deadline);
  [[nodiscard]] absl::Status AwaitAll(ShmCounter ShmLane::*counter, uint32_t chunks, absl::Time deadline);
  [[nodiscard]] absl::Status Await(int rank, ShmCounter& counter, uint32_t chunks, absl::Time deadline);
  // Sets `told` if the wait was reported.
  [[nodiscard]] absl::Status AwaitLong(int rank, ShmCounter& counter, uint32_t chunks, absl::Time deadline, bool& told);
  // OK: `rank` may yet come. Otherwise an error for GiveUp, with the rank to blame in `missing`.
  [[nodiscard]] absl::Status WhyMissing(int rank, int& missing) const;
  [[nodiscard]] absl::Status CompareCalls() const;
  // Makes every operation from now on end with `status`.
  [[nodiscard]] absl::Status GiveUp(absl::Status status, int missing);
  void Say(ShmPresence presence, int missing);

  // Returns the counters' value after this many chunks of this operation.
  uint32_t Count(size_t chunks) const { return static_cast<uint32_t>(first_chunk_ + chunks); }
  std::byte* Piece(int slot_of, size_t chunk, int share) const {
    return member_->slot(slot_of, first_chunk_ + chunk) + share * member_->layout().piece_bytes();
  }

  const std::unique_ptr<ShmMember> member_;
  const std::vector<std::string> names_;
  const int rank_;
  const int size_;
  const ShortWait short_wait_;
  uint64_t first_chunk_ = 0;  // of the operation, counted since the group began
  uint64_t calls_ = 0;
  std::vector<const std::byte*> contributions_;  // of all ranks to the present share; kept, so that no call allocates
  absl::Status failure_;
};

}  // namespace muster
