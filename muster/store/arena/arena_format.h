// The records inside an arena, byte for byte. Only fixed-size integers and a process-shared mutex: every process that
// maps the arena sees the same thing, and so does the next process when one was killed between any two of its
// instructions. Who may write what, under which lock, is said beside each; docs/store_protocol.md has the table.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <type_traits>

namespace muster {

constexpr uint64_t kArenaMagic = 0x30616e6572613030;  // "00arena0", little endian
constexpr uint32_t kArenaVersion = 7;

// Staleness is counted exactly up to here, which is far beyond what a usable number of workers produces; the last count
// stands for that or more.
constexpr int kStalenessCounts = 65;

enum class ArenaState : uint32_t {
  kLoading = 0,  // values are being written: whoever finds it so has no model
  kReady = 1,
};

// What a ps counts.
struct ArenaCounters {
  uint64_t updates;     // "version" of the ps: updates applied
  int64_t global_step;  // ps 0
  int64_t minibatches;  // ps 0
};

// Of the synchronous gate: the round that is being collected.
struct GateCounters {
  uint64_t round;
  uint64_t contributors;  // different clients in it
  int64_t minibatches;    // theirs; ps 0
  uint64_t dropped;       // pushes that were too late, ever
};

// A client's numbers: what must be known of it to recognise a retry.
struct ClientNumbers {
  uint64_t last_applied;           // sequence number of the last push that was applied whole, or dropped
  uint64_t last_counted;           // … and of the last that was counted in global_step
  uint64_t contributed;            // 1 + the last round that it contributed to; 0: none
  uint64_t contribution_sequence;  // of the push that did
  uint64_t clock;                  // bounded staleness: its pushes
  // ps 0: the last ticket of the work queue that a push of it brought which was applied here, or contributed …
  uint64_t work;
  uint64_t work_counted;  // … and that was counted; with a synchronous gate: before its last contribution
};

// The counters and a client's numbers change together or not at all: they are written here first, and whoever finds
// `valid` set writes them again.
struct CountJournal {
  uint64_t valid;
  int64_t client;  // -1: nobody's numbers change
  ClientNumbers numbers;
  ArenaCounters counters;
  GateCounters gate;
  uint64_t firing;  // what ArenaHeader::firing is from then on
};

// The chief's lease. `client` is written last, and is -1 while the others change.
struct ChiefLease {
  int64_t client;
  uint64_t epoch;  // one more with each new holder
  uint64_t incarnation;
};

// Of the synchronous gate: what workers that fire rounds themselves have to know of the ps, and of each other ("Divided
// apply"). Written under count_mutex, but for the last three.
struct RoundControl {
  uint64_t needed;      // contributors that a round needs now; 0: the ps hasn't said
  uint64_t held_from;   // 1 + the first round that doesn't begin to fire, but to catch up with ps 0; 0: none is held
  uint64_t collecting;  // 1: the ps is adding a gradient that came by message: it alone may begin a firing
  uint64_t firings;     // begun ever: the number of the one that is under way. Loading doesn't set it back
  uint64_t divided;     // 1: some worker contributes here without the ps
  uint64_t lost;        // 1 + a round that can't have its contributors any more, for too many are done; 0: none
  uint32_t bell;        // one more whenever somebody who waits for a round should look again
  uint32_t sleeping;    // 1: somebody sleeps until it rings
};

// Offset 0. Written by the ps process only, but for what direct workers write too, under count_mutex: the journal, what
// it is finished into (counters, gate, firing), and the staleness.
struct ArenaHeader {
  uint64_t magic;  // written last when an arena is made
  uint32_t version;
  uint32_t num_clients;
  uint64_t layout_hash;
  uint64_t total_bytes;
  uint64_t model_offset;  // the model as a StoreModel message: a restarted ps learns from it what it holds
  uint64_t model_bytes;
  ArenaState state;
  uint32_t ended;       // 1: training has ended
  uint64_t generation;  // of the values: one more each time that a chief has loaded them
  uint64_t mark;        // number of the last checkpoint mark; see StripeHeader::mark
  ArenaCounters counters;
  ChiefLease chief;
  CountJournal journal;
  GateCounters gate;
  uint64_t next_round;                   // once the firing that has begun is over
  uint64_t firing;                       // 0: none has begun; else 1 + the number of contributors. Written last
  pthread_mutex_t count_mutex;           // process-shared, robust
  uint64_t load_requested;               // 1: the chief is asked to load a checkpoint, and ps 0 knows which
  uint64_t staleness[kStalenessCounts];  // [i]: direct updates with staleness i
  uint64_t held;                         // 1: for the cut of a checkpoint; see ClientRecord::held_through
  uint64_t one_process;                  // 1: it ends with the one process that has it, so nothing is ever undone
  RoundControl rounds;
  uint64_t work_kept;  // which of the two places holds the work queue's state: 1 or 2; 0: none does
};

// What must outlive the ps process of a client: retries are recognised by it. Written by the ps process only, but for
// the numbers and direct_pushes, which a direct worker writes too, under count_mutex, and direct_begun.
struct ClientRecord {
  char task[64];   // "worker:1", zero-terminated
  char where[64];  // "host, pid 12", likewise
  uint64_t incarnation;
  uint64_t done;  // 1: it has said so
  ClientNumbers numbers;
  int64_t process;         // that writes here itself (direct apply): nobody takes the row while it lives; 0: none
  uint64_t process_start;  // … and its ProcessIdentity::start
  uint64_t direct_pushes;
  uint64_t settled;  // numbers up to here are of an earlier life, or of values that are gone: nothing comes of them
  uint64_t direct_begun;   // number of the newest update that `process` has begun
  uint64_t held_through;   // … and those up to here it may finish while this ps is held (CutFollower)
  uint64_t share_fired;    // number of the newest firing whose share of the stripes `process` has finished
  uint64_t work_returned;  // tickets up to here that weren't counted are others' now. Under count_mutex
};

// The head of one stripe. Everything after the mutex is guarded by it and is copied into an undo slot as one block.
struct StripeHeader {
  pthread_mutex_t mutex;  // process-shared, robust
  uint64_t updates;       // applied to this stripe
  uint64_t t;             // the rule's step counter (Adam's t)
  uint64_t mark;          // of the last checkpoint that has this stripe aside
  // Followed by num_clients × uint64_t: the sequence number of the last push of each client applied to this stripe.
  // With a synchronous gate then a StripeGate.
  uint64_t* last_sequence() { return reinterpret_cast<uint64_t*>(this + 1); }
};

// With a synchronous gate: behind a stripe's numbers of the clients, and like them a part of the header.
struct StripeGate {
  uint64_t fired;      // 1 + the last round that fired here
  uint64_t gradients;  // in the accumulator
  uint64_t abandoned;  // … of pushes that were begun and given up for a later one of the same client
};

// The head of a client's gradients, which a round takes if this is the number of the contribution. Followed by a
// PublishedSlice for each slice; the elements come later, each slice's where ArenaLayout says.
struct GradientHeader {
  uint64_t sequence;
};

struct PublishedSlice {
  uint64_t pushed;  // 0: the client has no gradient of it
  double scale;     // that it is multiplied by (clipping by norms)
};

// Which bytes of a stripe an update changes.
enum class StripeContent : uint64_t {
  kState = 0,        // value and slots
  kAccumulator = 1,  // what the synchronous gate has collected
  kAll = 2,          // all of these
  kRows = 3,         // some rows of value and slots
};

// The head of a writer's undo slot. Followed by the stripe's header from `updates` on as it was, and, from the next
// multiple of 4096, by the old bytes of value and slots, block by block; of rows piece by piece (arena_rows.h).
struct UndoHeader {
  uint64_t valid;   // 0: nothing to restore; 1 + n: the header and the first n blocks (pieces) are to be restored
  uint64_t stripe;  // whose
  StripeContent content;
  uint64_t* saved_header() { return reinterpret_cast<uint64_t*>(this + 1); }
};

static_assert(std::is_trivially_copyable_v<ArenaHeader> && sizeof(ArenaHeader) <= 4096);
static_assert(std::is_trivially_copyable_v<ClientRecord> && sizeof(ClientRecord) == 264);
static_assert(sizeof(StripeHeader) % alignof(uint64_t) == 0);

}  // namespace muster
