// Numbers that one thread changes while another reads them: counters, which only go up, and gauges. The code that
// counts owns them, and passes them to the code that shows them. Thread-safe, lock-free.
#pragma once

#include <atomic>
#include <cstdint>

namespace muster {

class Counter {
 public:
  void Add(uint64_t by = 1) { value_.fetch_add(by, std::memory_order_relaxed); }
  // Sets the value of a number that is counted elsewhere.
  void CatchUp(uint64_t value) { value_.store(value, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

class Gauge {
 public:
  void Set(double value) { value_.store(value, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

}  // namespace muster
