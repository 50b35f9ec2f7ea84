// What can be asked of a ps: one line for each method, from which the numbers, the names on the status page and in
// traces, a ps's dispatch (StoreService) and the list of all messages are made. A new message is its struct with its
// fields in a *_messages.h, a line here, its row in docs/, and its handler, StoreService::On.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

namespace muster {

// X(number, method, name, request, reply). Numbers are written to the wire: never renumber, never use one again. A
// reply without content is an EmptyReply; that of kStatus is JSON (store_status.h).
#define MUSTER_STORE_METHODS(X)                                                         \
  X(1, kJoin, "join", JoinRequest, JoinReply)                                           \
  X(2, kInitialize, "initialize", InitializeRequest, EmptyReply)                        \
  X(3, kAwaitReady, "await_ready", AwaitReadyRequest, AwaitReadyReply)                  \
  X(4, kPushPull, "push_pull", PushPullRequest, PushPullReply)                          \
  X(5, kHeartbeat, "heartbeat", HeartbeatRequest, EmptyReply)                           \
  X(6, kDone, "done", DoneRequest, EmptyReply)                                          \
  X(7, kShutdown, "shutdown", ShutdownRequest, EmptyReply)                              \
  X(8, kStatus, "status", StatusRequest, EmptyReply)                                    \
  X(9, kSavePart, "save_part", SavePartRequest, SavePartReply)                          \
  X(10, kExportPart, "export_part", ExportPartRequest, ExportPartReply)                 \
  X(11, kCommitCheckpoint, "commit_checkpoint", CommitCheckpointRequest, EmptyReply)    \
  X(12, kLoadCheckpoint, "load_checkpoint", LoadCheckpointRequest, LoadCheckpointReply) \
  X(13, kReportLoad, "report_load", ReportLoadRequest, EmptyReply)                      \
  X(14, kBarrier, "barrier", BarrierRequest, EmptyReply)                                \
  X(15, kGatherRows, "gather_rows", RowsRequest, EmptyReply)                            \
  X(16, kPushRows, "push_rows", RowsRequest, EmptyReply)                                \
  X(19, kClock, "clock", ClockRequest, ClockReply)                                      \
  X(20, kOpenDirect, "open_direct", OpenDirectRequest, OpenDirectReply)                 \
  X(21, kEnterDirect, "enter_direct", EnterDirectRequest, EmptyReply)                   \
  X(22, kHold, "hold", HoldRequest, HoldReply)                                          \
  X(23, kMark, "mark", MarkRequest, MarkReply)                                          \
  X(24, kOpenQueue, "open_queue", OpenQueueRequest, EmptyReply)                         \
  X(25, kEnqueue, "enqueue", QueueRequest, QueueReply)                                  \
  X(26, kDequeue, "dequeue", QueueRequest, QueueReply)                                  \
  X(27, kCloseQueue, "close_queue", QueueRequest, QueueReply)                           \
  X(28, kQueueSize, "queue_size", QueueRequest, QueueReply)                             \
  X(29, kAwaitTurn, "await_turn", AwaitTurnRequest, AwaitTurnReply)                     \
  X(30, kTakeWork, "take_work", TakeWorkRequest, TakeWorkReply)                         \
  X(31, kGiveUpWork, "give_up_work", GiveUpWorkRequest, EmptyReply)                     \
  X(32, kFetchPart, "fetch_part", FetchPartRequest, EmptyReply)                         \
  X(33, kSeesDirectory, "sees_directory", SeesDirectoryRequest, SeesDirectoryReply)

#define MUSTER_METHOD(number, method, name, Request, Reply) method = number,
enum class StoreMethod : uint16_t { MUSTER_STORE_METHODS(MUSTER_METHOD) };
#undef MUSTER_METHOD

// Above all numbers.
#define MUSTER_NUMBER(number, method, name, Request, Reply) number,
constexpr int kStoreMethods = 1 + std::max({MUSTER_STORE_METHODS(MUSTER_NUMBER) 0});
#undef MUSTER_NUMBER

// "push_pull"; "unknown" for what isn't one.
inline std::string StoreMethodName(uint16_t method) {
  switch (static_cast<StoreMethod>(method)) {
#define MUSTER_NAME(number, method, name, Request, Reply) \
  case StoreMethod::method:                               \
    return name;
    MUSTER_STORE_METHODS(MUSTER_NAME)
#undef MUSTER_NAME
  }
  return "unknown";
}

}  // namespace muster
