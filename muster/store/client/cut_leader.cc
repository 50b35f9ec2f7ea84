#include "muster/store/client/cut_leader.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/store/calls/store_call.h"

namespace muster {
namespace {

absl::StatusOr<std::vector<StoreCall>> AskAll(StoreClient& client, StoreMethod method,
                                              absl::FunctionRef<std::string(int)> message) {
  std::vector<StoreCall> calls;
  for (int ps = 0; ps < client.num_ps(); ++ps) calls.push_back({.ps = ps, .method = method, .control = message(ps)});
  RETURN_IF_ERROR(client.ps_calls().Ask(calls));
  return calls;
}

// Removes from ps 0's marked state the work inside the cut: ps 0 couldn't know which updates the other ps have.
absl::StatusOr<std::string> WorkLeft(const std::string& marked, const std::set<uint32_t>& inside) {
  if (marked.empty()) return marked;
  WorkState state;
  RETURN_IF_ERROR(Decode(marked, state));
  std::erase_if(state.entries, [&](const WorkEntry& entry) {
    return entry.in_update && inside.contains(static_cast<uint32_t>(entry.holder - 1));
  });
  for (WorkEntry& entry : state.entries) entry = {entry.epoch, entry.begin, entry.end};
  state.holders.clear();
  return Encode(state);
}

absl::StatusOr<CheckpointCut> HoldAndMark(StoreClient& client, uint64_t number) {
  ASSIGN_OR_RETURN(const auto held, AskAll(client, StoreMethod::kHold, [&](int ps) {
                     return Encode(HoldRequest{client.MakeStamp(ps, number), client.chief_epoch(ps)});
                   }));
  MarkRequest mark{.hold = number};
  for (const StoreCall& call : held) {
    HoldReply reply;
    RETURN_IF_ERROR(Decode(call.answer->control, reply));
    mark.through.resize(std::max(mark.through.size(), reply.begun.size()));
    for (size_t i = 0; i < reply.begun.size(); ++i) mark.through[i] = std::max(mark.through[i], reply.begun[i]);
    mark.round = std::max(mark.round, reply.round);
    mark.patient = mark.patient || reply.in_parts;
  }
  ASSIGN_OR_RETURN(const auto marked, AskAll(client, StoreMethod::kMark, [&](int ps) {
                     mark.stamp = client.MakeStamp(ps, number);
                     mark.chief_epoch = client.chief_epoch(ps);
                     return Encode(mark);
                   }));
  MarkReply first;
  RETURN_IF_ERROR(Decode(marked[0].answer->control, first));
  std::set<uint32_t> inside(first.uncounted.begin(), first.uncounted.end());
  const std::set<uint32_t> counted(first.counted.begin(), first.counted.end());
  for (const StoreCall& call : marked) {
    MarkReply reply;
    RETURN_IF_ERROR(Decode(call.answer->control, reply));
    for (const uint32_t gone : reply.missing) {
      inside.erase(gone);
      // It was silent for a while on this ps only. The step has its update, the part hasn't.
      if (counted.contains(gone))
        return absl::OutOfRangeError(absl::StrCat("an update of a worker that ps ", call.ps,
                                                  " took for dead was counted meanwhile: cut the checkpoint again"));
    }
  }
  ASSIGN_OR_RETURN(std::string work, WorkLeft(first.work, inside));
  return CheckpointCut{number, first.global_step + static_cast<int64_t>(inside.size()), std::move(work)};
}

}  // namespace

absl::StatusOr<CheckpointCut> CutCheckpoint(StoreClient& client) {
  const uint64_t number = client.NextNumbers().sequence;
  auto cut = HoldAndMark(client, number);
  if (cut.ok()) return cut;
  // Releases all ps now instead of at the hold's limit.
  if (absl::IsOutOfRange(cut.status())) {
    const auto released = AskAll(client, StoreMethod::kMark, [&](int ps) {
      return Encode(MarkRequest{client.MakeStamp(ps, number), client.chief_epoch(ps), number, {}, 0, /*release=*/true});
    });
    if (!released.ok()) LogWarning("not every ps could be told to go on: ", released.status().message());
  }
  return cut.status();
}

}  // namespace muster
