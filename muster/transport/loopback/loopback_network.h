// The network of transports that live in one process: who listens where, and how one end reaches the other. This one
// hands everything over at once; a SimulatedNetwork takes its time, and loses what it is told to. Give each test a
// network of its own. Thread-safe; must outlive the transports on it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/base/mutex.h"
#include "muster/transport/loopback/loopback_link.h"

namespace muster {

class LoopbackNetwork {
 public:
  using Link = std::shared_ptr<LoopbackLink>;
  using AtServer = absl::AnyInvocable<void(LoopbackListener&)>;
  using AtClient = absl::AnyInvocable<void(LoopbackChannel&)>;

  virtual ~LoopbackNetwork() = default;

  // "host:0" gets a free port. The address it has got; AlreadyExists if somebody listens there.
  absl::StatusOr<std::string> Add(const std::string& address, const std::shared_ptr<LoopbackServer>& server);
  // Nobody listens at the addresses of such servers any more.
  void RemoveIf(absl::FunctionRef<bool(const LoopbackServer&)> gone);

  // For the ends of connections alone.
  virtual Link MakeLink() { return std::make_shared<LoopbackLink>(); }
  // The server hears OnOpen; the client OnBroken if nobody listens there.
  virtual void Open(const Link& link, const std::string& address);
  virtual void SendRequest(const Link& link, const std::shared_ptr<LoopbackMessage>& message);
  // `control` and `bulk` are copied before it returns.
  virtual void SendReply(const Link& link, const std::shared_ptr<LoopbackMessage>& request, absl::Status status,
                         absl::string_view control, absl::Span<const ByteSpan> bulk);
  // Calls `action` on the loop of that end unless the connection has broken for it by then, after all earlier ones.
  virtual void ToServer(const Link& link, AtServer action);
  virtual void ToClient(const Link& link, AtClient action);

 protected:
  EventLoop::Handler Guard(const Link& link, AtServer action);
  static EventLoop::Handler Guard(const Link& link, AtClient action);
  // Null if nobody listens there.
  std::shared_ptr<LoopbackServer> Find(const std::string& address);

 private:
  Mutex mutex_;
  absl::flat_hash_map<std::string, std::shared_ptr<LoopbackServer>> servers_ ABSL_GUARDED_BY(mutex_);
  int next_port_ ABSL_GUARDED_BY(mutex_) = 40000;
};

}  // namespace muster
