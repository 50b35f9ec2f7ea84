// Measures how far the clock of a task's trace is from ps 0's: asks for its time, several times in a row and again
// every few seconds, and notes the time before each question and after its answer. Of each series only the fastest
// answer counts, as the most exact: the true offset is off by at most half its round trip. Has its own thread, loop and
// connection.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "muster/observe/tracer.h"
#include "muster/transport/io/tcp_event_loop.h"
#include "muster/transport/transport.h"

namespace muster {

class ClockProbe {
 public:
  // Starts. The samples go to `tracer`, which must outlive it.
  ClockProbe(JobToken token, const std::string& ps_address, Tracer& tracer);
  ~ClockProbe();  // stops and waits for the thread
  ClockProbe(const ClockProbe&) = delete;
  ClockProbe& operator=(const ClockProbe&) = delete;

 private:
  void Work();
  // Records nothing if ps 0 didn't answer.
  void Measure();

  Tracer& tracer_;
  TcpEventLoop loop_;  // Post is thread-safe; the rest belongs to thread_
  const std::unique_ptr<Transport> transport_;
  const std::unique_ptr<Channel> channel_;
  bool stopping_ = false;  // touched on the loop only
  std::thread thread_;     // last: starts when the rest exists
};

}  // namespace muster
