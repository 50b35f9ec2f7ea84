// The work queue of ps 0 as a WorkSource: a client with a loop and a connection of its own, for the thread that
// prepares batches while the training thread uses the node's client. Take is for one thread; the others may be called
// from any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/store/work/work_queue_client.h"
#include "muster/transport/io/tcp_event_loop.h"
#include "muster/transport/transport.h"

namespace muster {

class RemoteWork final : public WorkSource {
 public:
  // `address`: that of ps 0. Connects with the first call.
  RemoteWork(const JobToken& token, const std::string& address, WorkSpec spec, std::shared_ptr<WorkTally> tally,
             WorkQueueClientOptions options);

  absl::StatusOr<std::optional<WorkUnit>> Take() override { return client_.Take(); }
  bool Begin() override { return client_.Begin(); }
  [[nodiscard]] absl::Status Done() override { return client_.Done(); }
  void Stop() override { client_.Stop(); }

 private:
  TcpEventLoop loop_;
  std::unique_ptr<Transport> transport_;
  WorkQueueClient client_;
};

}  // namespace muster
