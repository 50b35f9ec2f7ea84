// A ps's arena in the process of a worker on its host, fetched through the ps's ArenaPort. The connection stays open,
// so that the worker sees it when the ps is gone (the arena stays mapped and true as long as somebody keeps it). Used
// by one thread.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "muster/store/arena/arena.h"

namespace muster {

class ArenaGuest {
 public:
  // Blocks for a few seconds at most. Unavailable: no such socket on this host: the ps is on another, or has died.
  // ResourceExhausted: this process has no descriptors left. PermissionDenied: the ps refuses (another user, another
  // pid namespace, a ticket that isn't one).
  static absl::StatusOr<std::unique_ptr<ArenaGuest>> Visit(const std::string& socket, const std::string& ticket);
  ~ArenaGuest();
  ArenaGuest(const ArenaGuest&) = delete;
  ArenaGuest& operator=(const ArenaGuest&) = delete;

  // Maps it, once the ps has let this process in. If `before` is the same memory its arena is taken over, so that its
  // addresses stay. Errors of Arena::Attach.
  [[nodiscard]] absl::Status Attach(ArenaGuest* before, int num_clients, ArenaProbe* probe);

  // The ps's process still has the connection open. Costs one system call, which doesn't block.
  bool host_alive() const;
  Arena& arena() const { return *arena_; }
  // Where the slice lies. To be read at any time, as in Hogwild; to be changed through the arena only.
  MutableByteSpan value(int slice) const;
  // Likewise, to be trained with until TakeAlong. A guest that takes the arena over knows of it.
  MutableByteSpan GiveOut(int slice);
  // The end: what was given out becomes this process's own at its address, as it is now, with the pages that it lies
  // on; a copy of the rest, which may be many times as large, would be for nobody. The arena isn't to be used any more.
  void TakeAlong();

 private:
  ArenaGuest(int connection, std::shared_ptr<ArenaMemory> memory);

  const int connection_;
  const std::shared_ptr<ArenaMemory> memory_;
  std::shared_ptr<Arena> arena_;
  std::set<int> given_out_;  // slices
};

}  // namespace muster
