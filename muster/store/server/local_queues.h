// The queues of a process that is its own cluster, where no ps keeps them: a ps for queues alone, in a thread, that
// only this process can reach. Thread-safe once it exists.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "muster/store/service/store_service.h"
#include "muster/transport/io/tcp_event_loop.h"
#include "muster/transport/transport.h"

namespace muster {

class LocalQueues {
 public:
  // Returns the errors of Transport::Listen.
  static absl::StatusOr<std::unique_ptr<LocalQueues>> Start(const JobToken& token, const std::string& task);
  // Callers that wait at a queue then find no ps.
  ~LocalQueues();
  LocalQueues(const LocalQueues&) = delete;
  LocalQueues& operator=(const LocalQueues&) = delete;

  const std::string& address() const { return address_; }

 private:
  LocalQueues(const JobToken& token, const std::string& task);

  TcpEventLoop loop_;  // Post is thread-safe; the rest belongs to thread_ once that runs
  const std::unique_ptr<Transport> transport_;
  StoreService service_;
  std::unique_ptr<Listener> listener_;
  std::string address_;
  bool stopping_ = false;  // touched on the loop only
  std::thread thread_;
};

}  // namespace muster
