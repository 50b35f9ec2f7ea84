// For tests: a group whose ranks are threads of this process. All kinds of Collective keep one contract.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "muster/base/check.h"
#include "muster/base/clock.h"
#include "muster/base/os/processors.h"
#include "muster/base/testing/free_addresses.h"
#include "muster/collective/ring/ring_collective.h"
#include "muster/collective/shm/shm_collective.h"

namespace muster {

inline std::vector<std::string> RankNames(int size) {
  std::vector<std::string> names;
  for (int rank = 0; rank < size; ++rank) names.push_back("worker:" + std::to_string(rank));
  return names;
}

// A generous deadline: no test depends on speed. What must come at once comes long before.
inline absl::Time Soon() { return RealClock().Now() + absl::Seconds(60); }

using MakeGroup = std::function<std::vector<std::unique_ptr<Collective>>(int size)>;

inline std::vector<std::unique_ptr<Collective>> MakeShmGroup(int size) {
  auto members = ShmMember::CreateAll(size);
  MUSTER_CHECK(members.ok());
  std::vector<std::unique_ptr<Collective>> group;
  for (auto& member : *members)
    group.push_back(std::make_unique<ShmCollective>(std::move(member), RankNames(size), UsableProcessors().count));
  return group;
}

inline std::vector<std::unique_ptr<Collective>> MakeRingGroup(int size) {
  GroupOptions options{.names = RankNames(size), .addresses = FreeAddresses(size)};
  std::vector<std::unique_ptr<Collective>> group;
  for (options.rank = 0; options.rank < size; ++options.rank) {
    auto ring = RingCollective::Create(options);
    MUSTER_CHECK(ring.ok());
    group.push_back(*std::move(ring));
  }
  return group;
}

// Runs `what` as every rank, each in its own thread, which owns its Collective.
inline void AsEveryRank(std::vector<std::unique_ptr<Collective>> group,
                        const std::function<void(std::unique_ptr<Collective>&)>& what) {
  std::vector<std::thread> threads;
  for (auto& rank : group) threads.emplace_back([&what, rank = std::move(rank)]() mutable { what(rank); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace muster
