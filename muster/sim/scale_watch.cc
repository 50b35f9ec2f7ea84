#include "muster/sim/scale_watch.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace muster {

void ScaleWatch::Verify() {
  if (peers_.ledger->form() != LedgerForm::kByStaleness) return;
  const bool first = !looked_;
  looked_ = true;
  const StoreService::View view = service_.MakeView();
  if (view.arena == nullptr) return;
  std::vector<uint64_t> applied;
  for (int i = 0; i < view.arena->layout().num_clients(); ++i)
    applied.push_back(view.arena->client(i).numbers.last_applied);
  std::vector<uint64_t> staleness(view.staleness.begin(), view.staleness.end());
  if (generation_ != view.arena->header().generation) {
    generation_ = view.arena->header().generation;
    whole_.assign(applied.size(), !first);
  } else {
    uint64_t pushes = 0;
    uint64_t newest = 0;
    for (size_t i = 0; i < staleness.size(); ++i) {
      pushes += staleness[i] - staleness_[i];
      if (staleness[i] > staleness_[i]) newest = i;
    }
    for (size_t client = 0; client < applied.size(); ++client) {
      if (applied[client] == applied_[client]) continue;
      if (pushes == 1 && newest + 1 < staleness.size() && whole_[client])
        Check(*view.arena, static_cast<int>(client), newest);
      whole_[client] = true;
    }
  }
  staleness_ = std::move(staleness);
  applied_ = std::move(applied);
}

void ScaleWatch::Check(Arena& arena, int client, uint64_t staleness) {
  const PushLedger& ledger = *peers_.ledger;
  const ClientRecord& record = arena.client(client);
  const PushLedger::Push* push = ledger.Find(record.incarnation, record.numbers.last_applied);
  if (push == nullptr) return;
  std::vector<std::byte> bytes;
  PushLedger::Digits digits;
  const size_t row_bytes = ledger.row() * sizeof(double);
  for (size_t slice = 0; slice < arena.model().slices.size(); ++slice) {
    const int variable = arena.model().slices[slice].variable;
    if (variable >= PushLedger::kVariables) continue;
    bytes.resize(arena.layout().slices()[slice].bytes);
    arena.Read(static_cast<int>(slice), MutableByteSpan(bytes));
    for (size_t at = 0; at < bytes.size(); at += row_bytes) {
      if (const auto wrong = ledger.ReadDigits(ByteSpan(bytes).subspan(at, row_bytes), digits))
        return peers_.violated(absl::StrCat("ps ", ps_, ": ", *wrong));
      for (const PushLedger::Minibatch& minibatch : *push)
        if (PushLedger::TakesPart(minibatch, variable) && digits[ledger.Element(minibatch)] != staleness + 1)
          return peers_.violated(absl::StrCat("ps ", ps_, ": minibatch ", minibatch.number, " of ", record.task,
                                              " is there divided by ", digits[ledger.Element(minibatch)],
                                              ", its push being stale by ", staleness));
    }
  }
}

}  // namespace muster
