#include "muster/store/service/checkpoint_requests.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/one_line.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/checkpoint/manifest.h"
#include "muster/transport/messages/codec.h"

namespace muster {
namespace {

absl::Status CheckSaveId(const std::string& id) {
  if (IsSaveId(id)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the id of a save is '", absl::CHexEscape(id), "'; accepted: 1 to 64 of a-z, 0-9"));
}

}  // namespace

absl::Status CheckpointRequests::On(const HoldRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(ps_.HearChief(call.connection, message.stamp, message.chief_epoch));
  RETURN_IF_ERROR(ps_.NeedModel());
  cut_.Hold(message, ps_.arena, std::move(call.responder));
  return absl::OkStatus();
}

absl::Status CheckpointRequests::On(const MarkRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(ps_.HearChief(call.connection, message.stamp, message.chief_epoch));
  RETURN_IF_ERROR(ps_.NeedModel());
  cut_.Mark(message, std::move(call.responder));
  return absl::OkStatus();
}

absl::Status CheckpointRequests::On(const SavePartRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(ps_.HearChief(call.connection, message.stamp, message.chief_epoch));
  RETURN_IF_ERROR(ps_.NeedModel());
  RETURN_IF_ERROR(CheckSaveId(message.save_id));
  if (!MayBePart(message.file))
    return absl::InvalidArgumentError(
        absl::StrCat("'", absl::CHexEscape(message.file), "' is not the name of a checkpoint's part"));
  saver_.FindDirectory(
      message.directory, message.save_id,
      [this, message, responder = std::move(call.responder)](const absl::StatusOr<std::string>& directory) mutable {
        if (absl::IsNotFound(directory.status()))
          return responder.Fail(absl::NotFoundError(absl::StrCat(
              ps_.options.task, " does not see ", directory.status().message(), ": its part goes through the chief")));
        if (!directory.ok()) return responder.Fail(directory.status());
        saver_.Save(JoinPath(*directory, TemporaryName(message.file, message.save_id)),
                    cut_.Marked(message.stamp, message.hold), std::move(responder));
      });
  return absl::OkStatus();
}

absl::Status CheckpointRequests::On(const ExportPartRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(ps_.HearChief(call.connection, message.stamp, message.chief_epoch));
  RETURN_IF_ERROR(ps_.NeedModel());
  saver_.Open(cut_.Marked(message.stamp, message.hold), std::move(call.responder));
  return absl::OkStatus();
}

absl::Status CheckpointRequests::On(const FetchPartRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(ps_.HearChief(call.connection, message.stamp, message.chief_epoch));
  RETURN_IF_ERROR(ps_.NeedModel());
  saver_.Fetch(cut_.Marked(message.stamp, message.hold), message.first, message.bytes, std::move(call.responder));
  return absl::OkStatus();
}

absl::Status CheckpointRequests::On(const SeesDirectoryRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(ps_.HearChief(call.connection, message.stamp, message.chief_epoch));
  RETURN_IF_ERROR(CheckSaveId(message.save_id));
  saver_.FindDirectory(message.directory, message.save_id,
                       [responder = std::move(call.responder)](const absl::StatusOr<std::string>& directory) mutable {
                         if (!directory.ok() && !absl::IsNotFound(directory.status()))
                           return responder.Fail(directory.status());
                         responder.Send(Encode(SeesDirectoryReply{directory.ok()}));
                       });
  return absl::OkStatus();
}

absl::Status CheckpointRequests::On(const CommitCheckpointRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(ps_.HearChief(call.connection, message.stamp, message.chief_epoch));
  if (!ps_.options.lead) return absl::InvalidArgumentError("only ps 0 commits checkpoints");
  if (message.directory.empty()) {
    call.responder.Send({});
    return absl::OkStatus();
  }
  const Retention retention{static_cast<int>(message.keep), message.preserve_every_hours > 0
                                                                ? absl::Hours(message.preserve_every_hours)
                                                                : absl::InfiniteDuration()};
  saver_.Commit(message.directory, message.manifest, retention, std::move(call.responder));
  return absl::OkStatus();
}

absl::Status CheckpointRequests::On(LoadCheckpointRequest message, IncomingCall& call) {
  RETURN_IF_ERROR(ps_.NeedLead());
  RETURN_IF_ERROR(ps_.NeedTraining());
  RETURN_IF_ERROR(ps_.NeedModel());
  if (load_) return absl::AlreadyExistsError(absl::StrCat("the chief is to load ", load_->path));
  const int chief = ps_.clients.chief();
  if (chief < 0 || ps_.clients.client(chief).done || !ps_.clients.Alive(ps_.clients.client(chief), ps_.loop.Now()))
    return absl::UnavailableError("no chief is alive that could load a checkpoint; start it, and ask again");
  load_ = {std::move(message.path), std::move(call.responder)};
  ps_.arena->header().load_requested = 1;
  return absl::OkStatus();
}

absl::Status CheckpointRequests::On(const ReportLoadRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(ps_.Hear(call.connection, message.stamp));
  call.responder.Send({});
  if (!load_) return absl::OkStatus();  // the client that asked has its answer already
  Load load = *std::exchange(load_, std::nullopt);
  if (ps_.arena) ps_.arena->header().load_requested = 0;
  if (message.error.empty()) {
    load.responder.Send(Encode(LoadCheckpointReply{message.global_step}));
  } else {
    load.responder.Fail(absl::FailedPreconditionError(OneLine(message.error)));
  }
  return absl::OkStatus();
}

void CheckpointRequests::FailLoad(const absl::Status& status) {
  if (load_) std::exchange(load_, std::nullopt)->responder.Fail(status);
}

}  // namespace muster
