// A channel's counts for its Stats: written by the thread that drives its loop, readable by any thread. Thread-safe;
// the figures of one reading may be from different moments.
#pragma once

#include <atomic>
#include <cstdint>

#include "muster/transport/channel.h"

namespace muster {

class TrafficCounts {
 public:
  void AddSent(uint64_t bytes) { Add(bytes_sent_, bytes); }
  void AddReceived(uint64_t bytes) { Add(bytes_received_, bytes); }
  void AddCall() { Add(calls_, 1); }
  void AddConnect() { Add(connects_, 1); }
  // Channel::Stats::link.
  void SetLink(const char* link) { link_.store(link, std::memory_order_relaxed); }

  Channel::Stats Read() const {
    return {.bytes_sent = bytes_sent_.load(std::memory_order_relaxed),
            .bytes_received = bytes_received_.load(std::memory_order_relaxed),
            .calls = calls_.load(std::memory_order_relaxed),
            .connects = connects_.load(std::memory_order_relaxed),
            .link = link_.load(std::memory_order_relaxed)};
  }

 private:
  static void Add(std::atomic<uint64_t>& count, uint64_t more) { count.fetch_add(more, std::memory_order_relaxed); }

  std::atomic<uint64_t> bytes_sent_{0};
  std::atomic<uint64_t> bytes_received_{0};
  std::atomic<uint64_t> calls_{0};
  std::atomic<uint64_t> connects_{0};
  std::atomic<const char*> link_{""};
};

}  // namespace muster
