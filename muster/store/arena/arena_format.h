// The records inside an arena, byte for byte. They hold only fixed-size integers and process-shared mutexes, so that
// every process that maps the arena sees the same, also when another was killed between any two instructions. Each says
// who may write it, and under which lock; docs/store/arena.md has the table.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <type_traits>

namespace muster {

constexpr uint64_t kArenaMagic = 0x30616e6572613030;  // "00arena0", little endian
constexpr uint32_t kArenaVersion = 8;

// Staleness is counted exactly up to here, far beyond what a usable number of workers produces; the last count includes
// everything above.
constexpr int kStalenessCounts = 65;

// Why updates are held back (ArenaHeader::held). Those of rows go on during a cut, but not where a ps is cut off.
constexpr uint64_t kHeldForCut = 1;
constexpr uint64_t kHeldCutOff = 2;

enum class ArenaState : uint32_t {
  kLoading = 0,  // values are being written: there is no model yet
  kReady = 1,
};

// The counters of a ps.
struct ArenaCounters {
  uint64_t updates;     // "version" of the ps: updates applied
  int64_t global_step;  // only on ps 0
  int64_t minibatches;  // only on ps 0
};

// The synchronous gate: the round that is being collected.
struct GateCounters {
  uint64_t round;
  uint64_t contributors;  // different clients in it
  int64_t minibatches;    // of these contributors; only on ps 0
  uint64_t dropped;       // pushes that ever came too late
};

// A client's numbers, by which retries are recognised.
struct ClientNumbers {
  uint64_t last_applied;           // sequence number of the last push that was applied whole, or dropped
  uint64_t last_counted;           // sequence number of the last push that was counted in global_step
  uint64_t contributed;            // 1 + the last round that it contributed to; 0: none
  uint64_t contribution_sequence;  // sequence number of the push that contributed
  uint64_t clock;                  // bounded staleness: the number of its pushes
  // ps 0: the last ticket of the work queue that one of its pushes brought and that was applied here, or contributed.
  uint64_t work;
  uint64_t work_counted;  // ps 0: the last one counted; with a synchronous gate: before its last contribution
};

// The counters and a client's numbers change together or not at all: they are written here first, and a process that
// finds `valid` set writes them again.
struct CountJournal {
  uint64_t valid;
  int64_t client;  // -1: no client's numbers change
  ClientNumbers numbers;
  ArenaCounters counters;
  GateCounters gate;
  uint64_t firing;  // the new ArenaHeader::firing
};

// The chief's lease. `client` is written last, and is -1 while the others change.
struct ChiefLease {
  int64_t client;
  uint64_t epoch;  // incremented for each new holder
  uint64_t incarnation;
};

// The synchronous gate: what workers that fire rounds themselves must know of the ps and of each other ("Divided
// apply"). Written under count_mutex, except for the last three fields.
struct RoundControl {
  uint64_t needed;      // contributors that a round needs now; 0: the ps hasn't said
  uint64_t held_from;   // 1 + the first held round, which fires only to catch up with ps 0; 0: none is held
  uint64_t collecting;  // 1: the ps is adding a gradient that came by message: only it may begin a firing
  uint64_t firings;     // number of firings ever begun: the number of the current one. Loading doesn't reset it
  uint64_t divided;     // 1: some worker contributes here without the ps
  uint64_t lost;        // 1 + a round that can't get its contributors any more, because too many are done; 0: none
  uint32_t bell;        // incremented whenever waiters for a round should check again
  uint32_t sleeping;    // 1: some process sleeps until the bell rings
};

// At offset 0. Only the ps process writes it, except for what direct workers also write under count_mutex: the journal,
// the fields it is copied to (counters, gate, firing), next_round, the staleness, and what RoundControl says of itself.
struct ArenaHeader {
  uint64_t magic;  // written last when an arena is created
  uint32_t version;
  uint32_t num_clients;
  uint64_t layout_hash;
  uint64_t total_bytes;
  uint64_t model_offset;  // the model as a StoreModel message, from which a restarted ps learns what it holds
  uint64_t model_bytes;
  ArenaState state;
  uint32_t ended;       // 1: training has ended
  uint64_t generation;  // of the values: incremented each time a chief loads them
  uint64_t mark;        // number of the last checkpoint mark; see StripeHeader::mark
  ArenaCounters counters;
  ChiefLease chief;
  CountJournal journal;
  GateCounters gate;
  uint64_t next_round;                   // the round after the current firing
  uint64_t firing;                       // 0: no firing; else 1 + the number of contributors. Written last
  pthread_mutex_t count_mutex;           // process-shared, robust
  uint64_t load_requested;               // 1: the chief must load a checkpoint that ps 0 knows
  uint64_t staleness[kStalenessCounts];  // [i]: direct updates with staleness i
  uint64_t held;         // CutFollower holds updates back: kHeldForCut, kHeldCutOff; see ClientRecord::held_through
  uint64_t one_process;  // 1: the arena ends with the only process that has it, so nothing is ever undone
  RoundControl rounds;
  uint64_t work_kept;  // which of the two places holds the work queue's state: 1 or 2; 0: neither
  int64_t server;      // the ps's process
  uint64_t outlives;   // 1: another process keeps this memory when that one is killed
};

// What must be remembered of a client when the ps process dies, to recognise retries. Only the ps process writes it,
// except for what a direct worker writes too: direct_begun, share_fired and, under count_mutex, the numbers and
// direct_pushes.
struct ClientRecord {
  char task[64];   // "worker:1", zero-terminated
  char where[64];  // "host, pid 12", likewise
  uint64_t incarnation;
  uint64_t done;  // 1: it has said that it is done
  ClientNumbers numbers;
  // The process that writes here itself (direct apply); no other takes the row while it lives. 0: none.
  int64_t process;
  uint64_t process_start;  // its ProcessIdentity::start
  uint64_t direct_pushes;
  // Pushes up to here are of an earlier life, or of replaced values: nothing of them will come any more.
  uint64_t settled;
  uint64_t direct_begun;   // number of the newest update that `process` has begun
  uint64_t held_through;   // `process` may finish its updates up to here while this ps is held (CutFollower)
  uint64_t share_fired;    // number of the newest firing whose share of the stripes `process` has finished
  uint64_t work_returned;  // uncounted tickets up to here were given to others. Under count_mutex
  uint64_t fenced;  // 1: the ps has taken it for lost: `process` writes no more before the client has joined again
};

// The head of one stripe. The mutex guards everything after it, which is copied into an undo slot as one block.
struct StripeHeader {
  pthread_mutex_t mutex;  // process-shared, robust
  uint64_t updates;       // applied to this stripe
  uint64_t t;             // the rule's step counter (Adam's t)
  uint64_t mark;          // the last checkpoint mark for which this stripe was saved aside
  // Followed by num_clients × uint64_t: the sequence number of each client's last push applied to this stripe. With a
  // synchronous gate, a StripeGate follows.
  uint64_t* last_sequence() { return reinterpret_cast<uint64_t*>(this + 1); }
};

// With a synchronous gate: follows a stripe's client numbers, and like them is part of the header.
struct StripeGate {
  uint64_t fired;      // 1 + the last round that fired here
  uint64_t gradients;  // in the accumulator
  uint64_t abandoned;  // pushes with gradients there that were begun and given up for a later one of the same client
};

// The head of a client's gradients. A round uses them if `sequence` is the number of the contribution. Followed by a
// PublishedSlice for each slice; the elements come later, where ArenaLayout says.
struct GradientHeader {
  uint64_t sequence;
};

struct PublishedSlice {
  uint64_t pushed;  // 0: the client has no gradient for it
  double scale;     // multiplies the gradient (clipping by norms)
};

// Which bytes of a stripe an update changes.
enum class StripeContent : uint64_t {
  kState = 0,        // value and slots
  kAccumulator = 1,  // what the synchronous gate has collected
  kAll = 2,          // all of these
  kRows = 3,         // some rows of value and slots
};

// The head of a writer's undo slot. Followed by the stripe's old header from `updates` on and, from the next multiple
// of 4096, by the old bytes of value and slots, block by block; of rows piece by piece (arena_rows.h).
struct UndoHeader {
  uint64_t valid;   // 0: nothing to restore; 1 + n: restore the header and the first n blocks (pieces)
  uint64_t stripe;  // which stripe was saved
  StripeContent content;
  uint64_t* saved_header() { return reinterpret_cast<uint64_t*>(this + 1); }
};

static_assert(std::is_trivially_copyable_v<ArenaHeader> && sizeof(ArenaHeader) <= 4096);
static_assert(std::is_trivially_copyable_v<ClientRecord> && sizeof(ClientRecord) == 272);
static_assert(sizeof(StripeHeader) % alignof(uint64_t) == 0);

}  // namespace muster
