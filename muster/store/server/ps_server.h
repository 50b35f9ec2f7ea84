// A parameter server as a process runs it: the store's state machine on a TCP listener, with the machine's clock, disk
// and signals. `muster ps` and a training program whose role is ps run the same one. No torch.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "muster/base/background_thread.h"
#include "muster/observe/status_server.h"
#include "muster/observe/tracer.h"
#include "muster/store/service/store_service.h"
#include "muster/transport/choice/transport_choice.h"
#include "muster/transport/io/tcp_event_loop.h"
#include "muster/transport/transport.h"

namespace muster {

struct PsServerOptions {
  std::string address;  // to serve on: "host:port"
  // How long the name in it may be unknown yet: that of a pod comes some time after its start.
  absl::Duration name_patience = absl::ZeroDuration();
  JobToken token;
  StoreOptions store;  // Start fills in incarnation, files, background and port
  TransportChoice transport = TransportChoice::kAuto;
  bool direct = true;        // workers on this host may apply their own updates
  Tracer* tracer = nullptr;  // borrowed; null: nothing is recorded, and there is no status page
  std::optional<StatusAddress> status_address;
  bool has_launcher = false;  // which starts it again when it ends with Unavailable
  // How long a ps that has a launcher serves on after a signal while others train. Less than engines leave between
  // SIGTERM and SIGKILL, 30 s by default in Slurm and Kubernetes.
  absl::Duration leave_after = absl::Seconds(10);
};

// Call Start and Join on one thread.
class PsServer {
 public:
  // Listens from now on, but answers in Join. Blocks for `name_patience`. Returns the errors of Transport::Listen and
  // StoreService::Recover; for a name that can't be resolved InvalidArgument, or Unavailable if there was a patience.
  static absl::StatusOr<std::unique_ptr<PsServer>> Start(PsServerOptions options);
  ~PsServer();

  // Serves until training has ended, or SIGINT or SIGTERM requests a stop, which ends training in order. Unavailable:
  // every worker left without the chief saying done; or there is a launcher, the signal came while a worker trains, and
  // training hasn't ended when leave_after is over. A launcher asks a ps last. So the signal was for all at once, as
  // engines send it, and the chief saves a last checkpoint meanwhile; or for this host (which is shut down, say), and
  // training goes on.
  [[nodiscard]] absl::Status Join();

  const std::string& address() const { return listener_->address(); }

 private:
  PsServer(PsServerOptions options, std::unique_ptr<ArenaListener> port);
  [[nodiscard]] absl::Status Listen(const std::string& address, absl::Duration name_patience);
  [[nodiscard]] absl::Status ShowStatus(const StatusAddress& address, const std::string& token);

  const std::string task_;
  const bool has_launcher_;
  const absl::Duration leave_after_;
  Track* const track_;  // null: nothing is recorded

  // The order matters: members destroyed first stop using those above them. The background thread finishes its files
  // after the service has gone, and posts answers to a loop that nobody runs any more.
  TcpEventLoop loop_;
  BackgroundThread background_;
  const std::unique_ptr<Transport> transport_;
  const std::unique_ptr<ArenaListener> port_;  // null: no process gets the arena
  StoreService service_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<StatusServer> status_server_;  // may be null
};

}  // namespace muster
