// The network of a simulated world: which process listens where, how long a message takes, which links are cut. As with
// TCP, a connection keeps its messages in order and loses none while it lasts; messages of different connections
// overtake one another. The two ends notice a broken connection at different times: until the server has noticed,
// requests that were on their way still arrive, although the client knows of the break and sends them again elsewhere.
//
// Used by the thread whose turn it is.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/sim/simulated_process.h"
#include "muster/transport/listener.h"

namespace muster {

class SimulatedChannel;
class SimulatedListener;

struct NetworkOptions {
  absl::Duration shortest = absl::Microseconds(50);
  absl::Duration longest = absl::Milliseconds(2);
  // One message in this many takes up to `slow`; 0: none.
  uint64_t slow_one_in = 0;
  absl::Duration slow = absl::Seconds(3);
};

// One connection, kept alive by the handlers. Each end is null once it is gone.
struct SimulatedConnection {
  uint64_t number = 0;
  SimulatedChannel* client = nullptr;
  SimulatedListener* server = nullptr;
  SimulatedThread* client_thread = nullptr;
  SimulatedThread* server_thread = nullptr;
  ConnectionId id{};         // at the server
  bool client_open = false;  // as seen by each end
  bool server_open = false;
  absl::Time last_to_client = absl::InfinitePast();  // arrival of the last message on its way
  absl::Time last_to_server = absl::InfinitePast();
  uint64_t messages = 0;
};

class SimulatedNetwork {
 public:
  using Connection = std::shared_ptr<SimulatedConnection>;

  SimulatedNetwork(SimulatedWorld& world, const NetworkOptions& options) : world_(world), options_(options) {}

  // AlreadyExists if the address is in use.
  [[nodiscard]] absl::Status Listen(const std::string& address, SimulatedListener* listener);
  void StopListening(const std::string& address) { listeners_.erase(address); }

  // Tries to connect, then calls the channel's OnConnected or OnRefused.
  Connection Open(SimulatedChannel& channel, SimulatedThread& thread, const std::string& address);

  // Both call `handler` on that end's thread when the message arrives there, after all earlier ones of the connection.
  void ToServer(const Connection& connection, EventLoop::Handler handler);
  void ToClient(const Connection& connection, EventLoop::Handler handler);

  // Breaks the connections between two processes. Each end notices after its delay, or when it is dead.
  void Cut(const std::string& one, const std::string& other, absl::Duration client_sees, absl::Duration server_sees);
  // Holds all messages between the two until then; what is sent meanwhile arrives afterwards.
  void Part(const std::string& one, const std::string& other, absl::Time until);
  // Closes the connections of a process, as the kernel does when it ends.
  void Close(SimulatedProcess& process);

 private:
  absl::Duration Delay(uint64_t connection, uint64_t message) const;
  absl::Time Arrival(SimulatedConnection& connection, absl::Time& last);
  absl::Time PartedUntil(const SimulatedConnection& connection) const;
  void Accept(const Connection& connection, const std::string& address);
  void BreakAtClient(const Connection& connection, absl::Time when);
  void BreakAtServer(const Connection& connection, absl::Time when);

  SimulatedWorld& world_;
  const NetworkOptions options_;
  uint64_t last_connection_ = 0;
  std::map<std::string, SimulatedListener*> listeners_;
  std::vector<Connection> connections_;
  std::map<std::pair<std::string, std::string>, absl::Time> parted_;  // names in order
};

}  // namespace muster
