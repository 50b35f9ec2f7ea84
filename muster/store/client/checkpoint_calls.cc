#include "muster/store/client/checkpoint_calls.h"

#include <utility>

#include "muster/base/status_macros.h"

namespace muster {

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
  snapshot.bytes.resize(ValueBytes(model) + SlotBytes(model));
  StoreCall call{.ps = ps,
                 .method = StoreMethod::kExportPart,
                 .control = Encode(ExportPartRequest{client.MakeStamp(ps, 0), hold}),
                 .into = {snapshot.bytes}};
  RETURN_IF_ERROR(client.ps_calls().Transfer(call));
  ExportPartReply reply;
  RETURN_IF_ERROR(client.ps_calls().Annotate(ps, Decode(call.answer->control, reply)));
  snapshot.steps = std::move(reply.steps);
  return snapshot;
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
