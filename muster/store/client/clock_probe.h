// Measures how far the clock of a task's trace is from that of ps 0: a question, with the time before it and after its
// answer, several at once and again every few seconds; of each time the fastest counts, for it is the most exact. The
// true offset is no further off than half of its round trip. A thread, a loop and a connection of its own.
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
  // Nothing if ps 0 didn't answer.
  void Measure();

  Tracer& tracer_;
  TcpEventLoop loop_;  // Post is thread-safe; the rest belongs to thread_
  const std::unique_ptr<Transport> transport_;
  const std::unique_ptr<Channel> channel_;
  bool stopping_ = false;  // touched on the loop only
  std::thread thread_;     // last: starts when the rest is there
};

}  // namespace muster
