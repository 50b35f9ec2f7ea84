// Passes the bytes of TCP connections on to a server, and on a test's word only those of one direction: a link that is
// dead the other way. Has its own thread. Thread-safe.
#pragma once

#include <atomic>
#include <string>
#include <thread>

namespace muster {

class OneWayRelay {
 public:
  // Listens on a free port of the loopback interface. `server`: "127.0.0.1:2222"; connected to when a client comes.
  explicit OneWayRelay(const std::string& server);
  ~OneWayRelay();  // closes all connections
  OneWayRelay(const OneWayRelay&) = delete;
  OneWayRelay& operator=(const OneWayRelay&) = delete;

  const std::string& address() const { return address_; }
  // While `holds`, what the server sends stays here.
  void HoldAnswers(bool holds);

 private:
  void Serve();

  const int server_port_;
  int listener_ = -1;
  int wake_ = -1;  // an eventfd
  std::string address_;
  std::atomic<bool> holds_{false};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace muster
