// The records inside an arena, byte for byte. Only fixed-size integers and a process-shared mutex: every process that
// maps the arena sees the same thing. The arena owns them; who may write what, and under which lock, is said beside
// each.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <type_traits>

namespace muster {

constexpr uint64_t kArenaMagic = 0x30616e6572613030;  // "00arena0", little endian
constexpr uint32_t kArenaVersion = 1;

// Offset 0. Written by the ps process only.
struct ArenaHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t num_clients;
  uint64_t layout_hash;
  uint64_t total_bytes;
  uint64_t updates;      // "version" of the ps: updates applied
  int64_t global_step;   // ps 0
  int64_t minibatches;   // ps 0
  uint64_t chief_epoch;  // of the chief's lease: one more with each new holder
};

// What must outlive the ps process of a client: retries are recognised by it.
struct ClientRecord {
  char task[64];  // "worker:1", zero-terminated
  uint64_t incarnation;
  uint64_t last_applied;  // sequence number of the last push that was applied whole
  uint64_t last_counted;  // … and of the last that was counted in global_step
};

// The head of one stripe. Everything after the mutex is guarded by it and is copied into an undo slot as one block.
struct StripeHeader {
  pthread_mutex_t mutex;  // process-shared, robust
  uint64_t updates;       // applied to this stripe
  uint64_t t;             // the rule's step counter (Adam's t)
  uint64_t epoch;         // of the last checkpoint mark that this stripe was saved for
  // Followed by num_clients × uint64_t: the sequence number of the last push of each client applied to this stripe.
  uint64_t* last_sequence() { return reinterpret_cast<uint64_t*>(this + 1); }
};

// The head of a client's undo slot; the old bytes of value and slots follow at the next 4096.
struct UndoHeader {
  uint64_t valid;   // 0: nothing to restore
  uint64_t stripe;  // whose bytes these are
};

static_assert(std::is_trivially_copyable_v<ArenaHeader> && sizeof(ArenaHeader) == 64);
static_assert(std::is_trivially_copyable_v<ClientRecord> && sizeof(ClientRecord) == 88);
static_assert(sizeof(StripeHeader) % alignof(uint64_t) == 0);

}  // namespace muster
