// A ps's arena in the process of a worker on its host, fetched through the ps's ArenaListener. The connection stays
// open so that the worker sees when the ps is gone; the arena stays mapped and valid as long as any process keeps it.
// Used by one thread.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "muster/store/arena/arena.h"

namespace muster {

class ArenaAttachment {
 public:
  // Fetches the arena; blocks for a few seconds at most. Unavailable: no such socket on this host: the ps is on
  // another, or has died. ResourceExhausted: this process has no descriptors left. PermissionDenied: the ps refuses
  // (another user, another pid namespace, an invalid ticket).
  static absl::StatusOr<std::unique_ptr<ArenaAttachment>> Connect(const std::string& socket, const std::string& ticket);
  ~ArenaAttachment();
  ArenaAttachment(const ArenaAttachment&) = delete;
  ArenaAttachment& operator=(const ArenaAttachment&) = delete;

  // Maps the arena once the ps has let this process in. If `before` has the same memory, its mapping is taken over so
  // that addresses stay. Returns the errors of Arena::Attach.
  [[nodiscard]] absl::Status Attach(ArenaAttachment* before, int num_clients, ArenaProbe* probe);

  // Whether the ps's process still has the connection open. Costs one system call, which doesn't block.
  bool host_alive() const;
  Arena& arena() const { return *arena_; }
  // Where the slice lies. May be read at any time, as in Hogwild; may be changed through the arena only.
  MutableByteSpan value(int slice) const;
  // Likewise, but for training on it until TakeAlong. An attachment that takes over the mapping knows of it.
  MutableByteSpan GiveOut(int slice);
  // Ends the use of the arena: what was given out, with the pages that it lies on, becomes this process's own memory at
  // the same address and with its current values. The rest, perhaps many times as large, isn't copied: nobody needs it.
  void TakeAlong();

 private:
  ArenaAttachment(int connection, std::shared_ptr<ArenaMemory> memory);

  const int connection_;
  const std::shared_ptr<ArenaMemory> memory_;
  std::shared_ptr<Arena> arena_;
  std::set<int> given_out_;  // slices
};

}  // namespace muster
