// Waits between ranks in different processes for each other's counters. Short waits keep the processor if every rank
// can have one, otherwise they yield it to other threads; longer ones sleep in the kernel (futex). Counting makes no
// system call while nobody sleeps. Pure functions on shared memory; thread-safe.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "muster/collective/shm/shm_layout.h"

namespace muster {

// What a short wait does with the processor: keeps it, or yields it.
enum class ShortWait { kSpin, kYield };

// kSpin if the ranks may use at least as many processors as there are ranks.
ShortWait ShortWaitFor(int ranks, int processors);

// Counters wrap around; none is ever 2^31 chunks ahead.
bool HasCounted(ShmCounter& counter, uint32_t chunks);
// Sets the counter. A rank that sees it sees everything that this thread has stored before. Wakes sleeping ranks.
void CountTo(ShmCounter& counter, uint32_t chunks);

// Waits until it HasCounted (true), or for some 100 us.
bool AwaitBriefly(ShmCounter& counter, uint32_t chunks, ShortWait how);
// Sleeps until the counter changes, or for `limit`; returns HasCounted.
bool AwaitAsleep(ShmCounter& counter, uint32_t chunks, absl::Duration limit);
// Makes all sleeping ranks check again.
void WakeAll(ShmCounter& counter);

}  // namespace muster
