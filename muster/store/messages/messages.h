// The control messages between the store and its clients, and their encoding (protocol buffers, written with protozero;
// field numbers in docs/store/messages.md). Bulk bytes travel beside them. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/optim/staleness_scale.h"
#include "muster/store/messages/checkpoint_messages.h"
#include "muster/store/messages/clock_messages.h"
#include "muster/store/messages/cut_messages.h"
#include "muster/store/messages/direct_messages.h"
#include "muster/store/messages/load_messages.h"
#include "muster/store/messages/queue_messages.h"
#include "muster/store/messages/row_messages.h"
#include "muster/store/messages/stamp.h"
#include "muster/store/messages/turn_messages.h"
#include "muster/store/messages/update_part.h"
#include "muster/store/messages/work_messages.h"
#include "muster/store/messages/work_range.h"
#include "muster/store/model/model.h"
#include "muster/store/model/wire_precision.h"

namespace muster {

// The numbers are written to the wire: never renumber.
enum class StoreMethod : uint16_t {
  kJoin = 1,
  kInitialize = 2,
  kAwaitReady = 3,
  kPushPull = 4,
  kHeartbeat = 5,
  kDone = 6,
  kShutdown = 7,
  kStatus = 8,
  kSavePart = 9,
  kExportPart = 10,
  kCommitCheckpoint = 11,
  kLoadCheckpoint = 12,
  kReportLoad = 13,
  kBarrier = 14,
  kGatherRows = 15,
  kPushRows = 16,
  kClock = 19,
  kOpenDirect = 20,
  kEnterDirect = 21,
  kHold = 22,
  kMark = 23,
  kOpenQueue = 24,
  kEnqueue = 25,
  kDequeue = 26,
  kCloseQueue = 27,
  kQueueSize = 28,
  kAwaitTurn = 29,
  kTakeWork = 30,
  kGiveUpWork = 31,
};
constexpr int kStoreMethods = 32;

// "push_pull"; "unknown" if it isn't a method.
std::string StoreMethodName(uint16_t method);

struct JoinRequest {
  std::string task;  // "worker:1"
  uint64_t incarnation = 0;
  bool chief = false;  // asks for the chief's lease
  std::string where;   // "host, pid 123", for messages
};

struct JoinReply {
  uint32_t client = 0;
  uint64_t last_sequence = 0;  // the highest number of the task's earlier lives, to continue from
  bool ready = false;          // the model is initialised
  bool ended = false;          // training has ended: nothing to do
  uint64_t ps_incarnation = 0;
  uint64_t chief_epoch = 0;  // of the lease, for the chief
  int64_t global_step = 0;
  uint64_t generation = 0;  // of the values, ready or not
};

// Bulk: the values of the slices in order; if `with_slots`, then every slot of every trainable slice, slot by slot
// within a slice.
struct InitializeRequest {
  Stamp stamp;
  uint64_t chief_epoch = 0;
  StoreModel model;
  bool with_slots = false;
  std::vector<uint64_t> steps;  // with slots: the rule's step counter of each stripe of the ps
  int64_t global_step = 0;
  int64_t minibatches = 0;
  uint64_t generation = 0;  // higher than any ps's; a generation that a ps already has changes nothing
  bool with_rows = false;   // the bulk includes tables of rows; otherwise they start from their initializers
  std::string work;         // ps 0: the WorkState that belongs to these values; empty: none
};

struct AwaitReadyRequest {
  Stamp stamp;
  StoreModel model;         // compared with the chief's
  uint64_t generation = 0;  // answered once the values are of this generation or a later one
};

struct AwaitReadyReply {
  int64_t global_step = 0;
  uint64_t generation = 0;
};

enum class PullWhat : uint8_t { kNothing = 0, kTrainable = 1, kEverything = 2 };

// Whether such a pull includes variables of that kind. Tables of rows never come as a whole.
inline bool Pulls(PullWhat what, VariableKind kind) {
  if (kind == VariableKind::kRows) return false;
  return what == PullWhat::kEverything || (what == PullWhat::kTrainable && kind == VariableKind::kTrainable);
}

// Bulk: for each pushed slice its gradient (trainable) or its new value (buffer). The reply's bulk: the requested
// slices, in order; for an update in parts see push_part.h.
struct PushPullRequest {
  Stamp stamp;
  std::vector<uint32_t> pushed;  // indices into the ps's slices, ascending; empty: nothing is pushed
  PullWhat pull = PullWhat::kNothing;
  uint64_t pulled_version = 0;  // of the values that the gradients were computed from
  uint32_t minibatches = 0;     // ps 0: counts one update made of that many minibatches; 0 counts nothing
  uint64_t generation = 0;      // of those values; another one is answered with Aborted
  int64_t global_step = 0;      // that the sender knows of: ps that don't count it use it for schedules
  std::vector<double> scales;   // one per pushed slice: its gradient's factor; empty: 1 for all
  bool contributes = false;     // to the round of the synchronous gate
  uint64_t local_step = 0;      // contributes: the round that the gradients were computed for, as ps 0 answered it
  uint64_t clock = 0;           // bounded staleness, workers' order: it is the sender's clock-th push; 0: none of them
  bool non_finite = false;      // ps 0: its gradients had NaN or infinity and were dropped (NonFinite::kDrop)
  bool with_pulled = false;     // after the bulk: for each pushed trainable slice, the values it was computed from
  double compensation = 0;      // with_pulled: λ of DelayCompensation, for all of them
  double adaptive = 0;          // with_pulled: γ of AdaptiveDelta, for all of them; at most one of the two
  double exchange = 0;  // α of an elastic exchange: values are pushed, the answer is how far they moved the centre
  StalenessScale staleness_scale = StalenessScale::kNone;  // by the staleness in this ps's answer
  bool update = false;                             // a ps's share of an update that ps 0 counts, even without a slice
  WirePrecision pushed_as = WirePrecision::kFull;  // of the gradients (of trainable float32 variables only)
  WirePrecision pulled_as = WirePrecision::kFull;  // of the pulled values, likewise
  UpdatePart part = UpdatePart::kWhole;
  std::vector<uint32_t> ranges;   // in parts: each pushed slice's first stripe, and how many; empty: whole slices
  std::vector<uint32_t> earlier;  // closing: the slices, ascending, of which open parts brought something
  WorkRange work;                 // ps 0: the work that this push uses up

  // Resets everything, but keeps the memory of the lists.
  void Clear() {
    std::vector<uint32_t> slices = std::move(pushed);
    std::vector<double> factors = std::move(scales);
    std::vector<uint32_t> stripes = std::move(ranges);
    std::vector<uint32_t> begun = std::move(earlier);
    *this = PushPullRequest();
    (ranges = std::move(stripes)).clear();
    (earlier = std::move(begun)).clear();
    (pushed = std::move(slices)).clear();
    (scales = std::move(factors)).clear();
  }
  // Whether it is part of an update, or counts one: such pushes are refused once training has ended.
  bool Trains() const { return update || !pushed.empty() || minibatches > 0 || clock > 0 || contributes; }
};

struct PushPullReply {
  uint64_t version = 0;     // updates on this ps that are in the values, including this one; the values may have more
  uint64_t staleness = 0;   // updates of others between the pull and this push
  int64_t global_step = 0;  // meaningful on ps 0
  uint64_t round = 0;       // the one being collected: ps 0's is the token
  bool dropped = false;     // the gradients were too old, or the sender's earlier life is in the round already
  uint64_t clock = 0;       // of the sender
  std::string load;         // to the chief, from ps 0: the path of a checkpoint that it must load
  bool incomplete = false;  // closing: not all open parts have arrived, so the update is neither noted nor counted yet
};

struct HeartbeatRequest {
  Stamp stamp;
};

struct DoneRequest {
  Stamp stamp;
};

struct ShutdownRequest {
  std::string reason;
};

// Answered when `parties` different clients have arrived at the barrier `name`; elastic: or all present ones.
struct BarrierRequest {
  Stamp stamp;
  std::string name;
  uint32_t parties = 0;
  bool elastic = false;
};

// Replies without content are empty messages. Decode returns InvalidArgument if the bytes aren't such a message.
#define MUSTER_STORE_MESSAGES(X) \
  X(StoreModel)                  \
  X(JoinRequest)                 \
  X(JoinReply)                   \
  X(InitializeRequest)           \
  X(AwaitReadyRequest)           \
  X(AwaitReadyReply)             \
  X(PushPullRequest)             \
  X(PushPullReply)               \
  X(HeartbeatRequest)            \
  X(DoneRequest)                 \
  X(ShutdownRequest)             \
  X(SavePartRequest)             \
  X(SavePartReply)               \
  X(ExportPartRequest)           \
  X(ExportPartReply)             \
  X(CommitCheckpointRequest)     \
  X(HoldRequest)                 \
  X(HoldReply)                   \
  X(MarkRequest)                 \
  X(MarkReply)                   \
  X(BarrierRequest)              \
  X(AwaitTurnRequest)            \
  X(AwaitTurnReply)              \
  X(OpenDirectRequest)           \
  X(OpenDirectReply)             \
  X(EnterDirectRequest)          \
  X(RowsRequest)                 \
  X(LoadCheckpointRequest)       \
  X(LoadCheckpointReply)         \
  X(ClockReply)                  \
  X(ReportLoadRequest)           \
  X(OpenQueueRequest)            \
  X(QueueRequest)                \
  X(QueueReply)                  \
  X(TakeWorkRequest)             \
  X(TakeWorkReply)               \
  X(GiveUpWorkRequest)           \
  X(WorkState)

#define MUSTER_DECLARE_MESSAGE(Message)       \
  std::string Encode(const Message& message); \
  [[nodiscard]] absl::Status Decode(const std::string& bytes, Message& message);
MUSTER_STORE_MESSAGES(MUSTER_DECLARE_MESSAGE)
#undef MUSTER_DECLARE_MESSAGE

// Encodes into reused memory.
void EncodeTo(std::string& bytes, const PushPullRequest& message);
void EncodeTo(std::string& bytes, const PushPullReply& message);

}  // namespace muster
