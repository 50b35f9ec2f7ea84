#include "muster/store/client/checkpoint_calls.h"

#include <algorithm>
#include <span>
#include <utility>

#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/checkpoint/save_trouble.h"

namespace muster {
namespace {

// Returns the part's step counters.
absl::StatusOr<std::vector<uint64_t>> OpenPart(StoreClient& client, int ps, uint64_t hold) {
  StoreCall call{.ps = ps,
                 .method = StoreMethod::kExportPart,
                 .control = Encode(ExportPartRequest{client.MakeStamp(ps, 0), hold, client.chief_epoch(ps)})};
  RETURN_IF_ERROR(client.ps_calls().Transfer(call));
  ExportPartReply reply;
  RETURN_IF_ERROR(client.ps_calls().Annotate(ps, Decode(call.answer->control, reply)));
  return std::move(reply.steps);
}

absl::Status FetchPieces(StoreClient& client, int ps, uint64_t hold, std::span<const PartPiece> pieces) {
  std::vector<StoreCall> calls;
  for (const PartPiece& piece : pieces)
    calls.push_back({.ps = ps,
                     .method = StoreMethod::kFetchPart,
                     .control = Encode(FetchPartRequest{client.MakeStamp(ps, 0), client.chief_epoch(ps), hold,
                                                        piece.first, piece.into.size()}),
                     .into = {piece.into}});
  return client.ps_calls().Ask(calls);
}

// Frees the ps's memory now instead of at the next cut. It is no error if that fails: the part is here.
void ClosePart(StoreClient& client, int ps, uint64_t hold) {
  StoreCall call{
      .ps = ps,
      .method = StoreMethod::kMark,
      .control = Encode(MarkRequest{client.MakeStamp(ps, 0), client.chief_epoch(ps), hold, {}, 0, /*release=*/true})};
  const absl::Status closed = client.ps_calls().ExchangeOne(call, client.ps_calls().options().patience);
  if (!closed.ok()) LogWarning("the part of a checkpoint stays open at a ps: ", closed.message());
}

}  // namespace

absl::StatusOr<SavePartReply> SavePart(StoreClient& client, int ps, const std::string& directory,
                                       const std::string& save_id, const std::string& file, uint64_t hold) {
  StoreCall call{.ps = ps,
                 .method = StoreMethod::kSavePart,
                 .control = Encode(
                     SavePartRequest{client.MakeStamp(ps, 0), client.chief_epoch(ps), directory, save_id, file, hold})};
  RETURN_IF_ERROR(client.ps_calls().Transfer(call));
  SavePartReply reply;
  RETURN_IF_ERROR(client.ps_calls().Annotate(ps, Decode(call.answer->control, reply)));
  return reply;
}

absl::StatusOr<PartSnapshot> ExportPart(StoreClient& client, int ps, uint64_t hold) {
  const StoreModel model = client.ModelOf(ps);
  PartSnapshot snapshot;
  ASSIGN_OR_RETURN(snapshot.steps, OpenPart(client, ps, hold));
  snapshot.bytes.resize(ValueBytes(model) + SlotBytes(model));
  for (uint64_t first = 0; first < snapshot.bytes.size(); first += kMostFetchedBytes) {
    const MutableByteSpan rest = MutableByteSpan(snapshot.bytes).subspan(first);
    const PartPiece piece{first, rest.first(std::min<uint64_t>(rest.size(), kMostFetchedBytes))};
    RETURN_IF_ERROR(FetchPieces(client, ps, hold, {&piece, 1}));
  }
  ClosePart(client, ps, hold);
  return snapshot;
}

absl::StatusOr<SavePartReply> FetchPartInto(StoreClient& client, int ps, uint64_t hold, FileSystem& files,
                                            const std::string& path) {
  ASSIGN_OR_RETURN(const std::vector<uint64_t> steps, OpenPart(client, ps, hold));
  absl::Status fetched;
  const auto written = WritePartInPieces(
      files, path, client.ModelOf(ps), steps, kMostFetchedBytes,
      [&](std::span<const PartPiece> pieces) { return fetched = FetchPieces(client, ps, hold, pieces); });
  RETURN_IF_ERROR(fetched);
  ClosePart(client, ps, hold);
  if (!written.ok()) return AsSaveTrouble(written.status());
  return SavePartReply{written->bytes, written->crc32c};
}

absl::StatusOr<std::vector<int>> FindPsElsewhere(StoreClient& client, const std::string& directory,
                                                 const std::string& save_id) {
  std::vector<StoreCall> calls;
  for (int ps = 0; ps < client.num_ps(); ++ps)
    calls.push_back(
        {.ps = ps,
         .method = StoreMethod::kSeesDirectory,
         .control = Encode(SeesDirectoryRequest{client.MakeStamp(ps, 0), client.chief_epoch(ps), directory, save_id})});
  RETURN_IF_ERROR(client.ps_calls().Ask(calls));
  std::vector<int> elsewhere;
  for (const StoreCall& call : calls) {
    SeesDirectoryReply reply;
    RETURN_IF_ERROR(client.ps_calls().Annotate(call.ps, Decode(call.answer->control, reply)));
    if (!reply.sees) elsewhere.push_back(call.ps);
  }
  return elsewhere;
}

absl::Status CommitCheckpoint(StoreClient& client, const std::string& directory, const std::string& manifest, int keep,
                              double preserve_every_hours) {
  StoreCall call{.ps = 0,
                 .method = StoreMethod::kCommitCheckpoint,
                 .control = Encode(CommitCheckpointRequest{client.MakeStamp(0, 0), client.chief_epoch(), directory,
                                                           manifest, keep, preserve_every_hours})};
  return client.ps_calls().Transfer(call);
}

}  // namespace muster
