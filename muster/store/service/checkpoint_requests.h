// What is asked of a ps about checkpoints: the cut, its part, the commit, and that another one be loaded. Lives on the
// store's event loop.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "muster/store/checkpoints/cut_follower.h"
#include "muster/store/checkpoints/part_saver.h"
#include "muster/store/messages/checkpoint_messages.h"
#include "muster/store/messages/cut_messages.h"
#include "muster/store/messages/load_messages.h"
#include "muster/store/service/incoming_call.h"
#include "muster/store/service/ps_state.h"

namespace muster {

class CheckpointRequests {
 public:
  // All must outlive it.
  CheckpointRequests(PsState& ps, CutFollower& cut, PartSaver& saver) : ps_(ps), cut_(cut), saver_(saver) {}

  // As the handlers of StoreService.
  absl::Status On(const HoldRequest& message, IncomingCall& call);
  absl::Status On(const MarkRequest& message, IncomingCall& call);
  absl::Status On(const SavePartRequest& message, IncomingCall& call);
  absl::Status On(const ExportPartRequest& message, IncomingCall& call);
  absl::Status On(const FetchPartRequest& message, IncomingCall& call);
  absl::Status On(const SeesDirectoryRequest& message, IncomingCall& call);
  absl::Status On(const CommitCheckpointRequest& message, IncomingCall& call);
  absl::Status On(LoadCheckpointRequest message, IncomingCall& call);
  absl::Status On(const ReportLoadRequest& message, IncomingCall& call);

  // The checkpoint that this client has to load: somebody asks for one, and it is the chief. Else empty.
  std::string LoadFor(int client) const { return load_ && ps_.clients.chief() == client ? load_->path : std::string(); }
  // Reports the failure to the client that asked for the load.
  void FailLoad(const absl::Status& status);

 private:
  // A checkpoint that somebody wants loaded, until the chief has reported.
  struct Load {
    std::string path;
    Responder responder;
  };

  PsState& ps_;
  CutFollower& cut_;
  PartSaver& saver_;
  std::optional<Load> load_;
};

}  // namespace muster
