// The part of Node that opens queues.
#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/store/queues/queue_spec.h"
#include "muster/train/node/node.h"

namespace muster {

absl::StatusOr<std::unique_ptr<QueueHandle>> Node::OpenQueue(const std::string& name, const QueueOptions& options) {
  const QueueSpec spec{name, options.capacity, options.components};
  RETURN_IF_ERROR(ValidateQueue(spec));
  const std::vector<std::string> ps = task_.ps_addresses();
  const std::string self = task_.task().ToString();
  if (ps.empty() && task_.distributed())
    return WrongConfigurationError(
        absl::StrCat("queue '", name, "' needs a ps that keeps it, and this cluster has none: add a 'ps' job"));
  const int num_ps = ps.empty() ? 1 : static_cast<int>(ps.size());
  const int index = options.ps.value_or(PsOfQueue(name, num_ps));
  if (index < 0 || index >= num_ps)
    return absl::InvalidArgumentError(
        absl::StrCat("queue '", name, "' is to be on ps ", index, "; accepted: 0 to ", num_ps - 1));
  if (ps.empty() && queues_ == nullptr) {
    ASSIGN_OR_RETURN(queues_, LocalQueues::Start(options_.token, self));
  }
  QueueClientOptions client{
      .task = self, .ps = ps.empty() ? self : absl::StrCat("ps:", index), .patience = options_.patience};
  if (stop_signal_) client.stop_requested = [this] { return stop_signal_->raised(); };
  auto handle = std::make_unique<QueueHandle>(
      options_.token, ps.empty() ? queues_->address() : ps[static_cast<size_t>(index)], spec, std::move(client));
  RETURN_IF_ERROR(handle->Open(options.open_timeout));
  return handle;
}

}  // namespace muster
