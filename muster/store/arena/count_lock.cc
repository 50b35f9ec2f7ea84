#include "muster/store/arena/count_lock.h"

#include <algorithm>
#include <cerrno>

#include "muster/store/arena/arena_locks.h"
#include "muster/store/arena/shared_memory_order.h"

namespace muster {

Arena::CountLock::CountLock(Arena& arena) : arena_(arena) {
  Locks locks(arena);
  const int error = LockRobust(&arena.header().count_mutex, locks);
  FinishJournal();
  if (error == EOWNERDEAD) pthread_mutex_consistent(&arena.header().count_mutex);
}

Arena::CountLock::~CountLock() {
  if (arena_.probe_ == nullptr || !arena_.probe_->dying()) pthread_mutex_unlock(&arena_.header().count_mutex);
}

void Arena::CountLock::FinishJournal() {
  ArenaHeader& header = arena_.header();
  CountJournal& journal = header.journal;
  if (journal.valid == 0) return;
  if (journal.client >= 0) arena_.client(static_cast<int>(journal.client)).numbers = journal.numbers;
  // Word by word, because others read these without the lock.
  Publish(header.counters.updates, journal.counters.updates);
  Publish(header.counters.global_step, journal.counters.global_step);
  Publish(header.counters.minibatches, journal.counters.minibatches);
  header.gate = journal.gate;
  header.firing = journal.firing;
  Publish<uint64_t>(journal.valid, 0);
}

void Arena::CountLock::Commit(const ArenaCount& counted) {
  arena_.At(ArenaPoint::kAcknowledging);
  CountJournal& journal = arena_.header().journal;
  journal.client = counted.client;
  journal.numbers = counted.numbers;
  journal.counters = counted.counters;
  journal.gate = counted.gate;
  journal.firing = counted.firing;
  Publish<uint64_t>(journal.valid, 1);  // this is the commit
  arena_.At(ArenaPoint::kJournalled);
  FinishJournal();
  arena_.At(ArenaPoint::kCounted);
}

bool Arena::CountLock::Add(const UpdateCount& update) {
  ArenaHeader& header = arena_.header();
  if (Observe(header.generation) != update.generation) return false;
  ArenaCount counted{update.client, arena_.client(update.client).numbers, header.counters, header.gate, header.firing};
  ClientNumbers& numbers = counted.numbers;
  const bool counts =
      update.minibatches > 0 && (numbers.last_counted < update.sequence || arena_.Has(PlantedBug::kCountTwice));
  const bool applies = update.applied && numbers.last_applied < update.sequence;
  const bool spends = update.spent && numbers.work_counted < update.work.through;
  if (!applies && !counts && !spends) return true;
  const bool late = update.work.from > 0 && update.work.from <= arena_.client(update.client).work_returned;
  if (late && numbers.last_counted < update.sequence) return false;
  if (applies && update.update) ++counted.counters.updates;
  if (counts) {
    ++counted.counters.global_step;
    counted.counters.minibatches += update.minibatches;
    numbers.last_counted = update.sequence;
  }
  if (applies) numbers.last_applied = update.sequence;
  numbers.work = std::max(numbers.work, update.work.through);
  if (counts || spends) numbers.work_counted = std::max(numbers.work_counted, update.work.through);
  numbers.clock = std::max(numbers.clock, update.clock);
  Commit(counted);
  return true;
}

void Arena::CountLock::NoteDirect(int client, uint64_t staleness) {
  ++arena_.header().staleness[std::min<uint64_t>(staleness, kStalenessCounts - 1)];
  ++arena_.client(client).direct_pushes;
}

void Arena::CountLock::Restart(int64_t global_step, int64_t minibatches) {
  ArenaHeader& header = arena_.header();
  // Others read these without the lock, too.
  Publish(header.counters.global_step, global_step);
  Publish(header.counters.minibatches, minibatches);
  header.gate = {.round = static_cast<uint64_t>(global_step), .dropped = header.gate.dropped};
  header.firing = 0;
  Publish<uint64_t>(header.rounds.lost, 0);
}

}  // namespace muster
