#include "muster/store/work/local_work.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

// This process is the store's only client, and has only one life.
constexpr Stamp kLocalWorker = {.client = 0, .incarnation = 1};

}  // namespace

LocalWork::LocalWork(std::shared_ptr<WorkQueue> queue, std::shared_ptr<WorkTally> tally, WorkSpec spec)
    : queue_(std::move(queue)), tally_(std::move(tally)), spec_(std::move(spec)) {}

absl::StatusOr<std::optional<WorkUnit>> LocalWork::Take() {
  if (stopped_) return absl::CancelledError(absl::StrCat("work queue '", spec_.name, "': a stop was requested"));
  // A prefetching thread may ask first, before there is a session.
  TakeWorkRequest request = tally_->Ask();
  request.stamp = {kLocalWorker.client, kLocalWorker.incarnation, request.stamp.sequence};
  request.spec = spec_;
  const uint64_t counted = tally_->counted();
  queue_->Note(0, {counted, counted, counted});
  ASSIGN_OR_RETURN(const TakeWorkReply reply, queue_->Take(request));
  if (reply.answer != WorkAnswer::kUnit) return std::nullopt;
  tally_->Taken(reply.ticket);
  return WorkUnit{reply.epoch, reply.begin, reply.end};
}

absl::Status LocalWork::Done() {
  tally_->Over();
  return absl::OkStatus();
}

}  // namespace muster
