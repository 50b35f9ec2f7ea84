#include "muster/store/queues/fifo_queues.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/store/messages/messages.h"

namespace muster {
namespace {

// If a caller that hears nothing repeats a request more often than this, only the last ones are answered.
constexpr size_t kMaxAskers = 4;

absl::Time DeadlineOf(const QueueRequest& message, absl::Time now) {
  if (message.wait_ms >= QueueRequest::kNoLimit) return absl::InfiniteFuture();
  return now + absl::Milliseconds(static_cast<int64_t>(message.wait_ms));
}

uint64_t Budget(const QueueSpec& spec) { return spec.capacity * (ElementBytes(spec) + kQueueElementOverhead); }

}  // namespace

absl::Status FifoQueues::UnknownLane() const {
  return absl::AbortedError(absl::StrCat(options_.task,
                                         " doesn't know this caller of a queue: it was restarted and has lost its "
                                         "queues, or has heard nothing of it for ",
                                         absl::FormatDuration(FifoQueuesOptions::kLaneMemory)));
}

void FifoQueues::ForgetLanes(absl::Time now) {
  std::erase_if(lanes_, [now](const auto& entry) {
    const Lane& lane = entry.second;
    return lane.connections.empty() && now - lane.disconnected_at > FifoQueuesOptions::kLaneMemory;
  });
}

absl::Status FifoQueues::CheckOpen(const OpenQueueRequest& message, const QueueSpec& spec) const {
  if (message.lane == 0) return absl::InvalidArgumentError("the lane of a queue's caller must not be 0");
  RETURN_IF_ERROR(ValidateQueue(spec));
  if (const auto lane = lanes_.find(message.lane); lane != lanes_.end() && lane->second.queue->spec.name != spec.name)
    return absl::InvalidArgumentError(absl::StrCat("lane ", message.lane, " is of queue '",
                                                   lane->second.queue->spec.name, "', not '", spec.name, "'"));
  if (!lanes_.contains(message.lane) && lanes_.size() >= FifoQueuesOptions::kMaxLanes)
    return absl::ResourceExhaustedError(
        absl::StrCat(options_.task, " has ", lanes_.size(), " callers of queues, and no room for another"));
  const auto queue = queues_.find(spec.name);
  if (queue != queues_.end()) {
    if (queue->second.spec == spec) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("queue '", spec.name, "' on ", options_.task, " has ", DescribeQueue(queue->second.spec),
                     ", as specified when it was first opened; ", message.task, " asks for ", DescribeQueue(spec)));
  }
  if (queues_.size() >= FifoQueuesOptions::kMaxQueues)
    return absl::ResourceExhaustedError(
        absl::StrCat(options_.task, " has ", queues_.size(), " queues, and no room for '", spec.name, "'"));
  uint64_t bytes = 0;
  for (const auto& [name, other] : queues_) bytes += Budget(other.spec);
  if (Budget(spec) > options_.bytes - bytes)
    return absl::ResourceExhaustedError(absl::StrCat("queue '", spec.name, "' (", DescribeQueue(spec), ") would need ",
                                                     Budget(spec), " bytes of ", options_.task, " when it is full; of ",
                                                     options_.bytes, " there are ", options_.bytes - bytes,
                                                     " left: give it a smaller capacity, or another ps"));
  return absl::OkStatus();
}

void FifoQueues::Open(ConnectionId connection, const OpenQueueRequest& message, absl::Time now, Responder responder) {
  ForgetLanes(now);
  const QueueSpec spec{message.name, message.capacity, message.components};
  if (absl::Status status = CheckOpen(message, spec); !status.ok()) return responder.Fail(std::move(status));
  Queue& queue = queues_[spec.name];
  queue.spec = spec;
  queue.element_bytes = ElementBytes(spec);
  Lane& lane = lanes_[message.lane];
  lane.task = message.task;
  lane.queue = &queue;
  lane.connections.insert(connection);
  lane.heard = now;
  responder.Send({});
}

absl::Status FifoQueues::CheckElement(const QueueRequest& message, size_t bytes) const {
  const auto lane = lanes_.find(message.lane);
  if (lane == lanes_.end()) return UnknownLane();
  const Queue& queue = *lane->second.queue;
  if (bytes == queue.element_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("an element of queue '", queue.spec.name, "' has ",
                                                 queue.element_bytes, " bytes; ", bytes, " came"));
}

FifoQueues::Attempt* FifoQueues::Waiting(Lane& lane, uint64_t lane_id) const {
  for (Line* line : {&lane.queue->enqueues, &lane.queue->dequeues})
    for (Attempt& attempt : *line)
      if (attempt.lane == lane_id) return &attempt;
  return nullptr;
}

FifoQueues::Lane* FifoQueues::Begin(ConnectionId connection, const QueueRequest& message, absl::Time now,
                                    Responder& responder) {
  const auto found = lanes_.find(message.lane);
  if (found == lanes_.end()) {
    responder.Fail(UnknownLane());
    return nullptr;
  }
  Lane& lane = found->second;
  lane.connections.insert(connection);
  lane.heard = now;
  if (message.sequence < lane.newest || message.sequence == 0) {
    responder.Fail(
        absl::FailedPreconditionError(absl::StrCat("request ", message.sequence, " of ", lane.task, " to queue '",
                                                   lane.queue->spec.name, "' comes after its request ", lane.newest)));
    return nullptr;
  }
  if (message.sequence == lane.newest) {
    if (lane.outcome.sequence == lane.newest) {  // the answer was lost
      Answer(lane.outcome, std::move(responder));
      return nullptr;
    }
    if (Attempt* attempt = Waiting(lane, message.lane); attempt != nullptr) {
      attempt->deadline = DeadlineOf(message, now);
      attempt->askers.push_back({connection, std::move(responder)});
      if (attempt->askers.size() > kMaxAskers) {
        attempt->askers.front().responder.Fail(absl::CancelledError("asked again"));
        attempt->askers.erase(attempt->askers.begin());
      }
      Expire(now);
      return nullptr;
    }
    return &lane;
  }
  GiveUp(lane, message.lane);
  lane.newest = message.sequence;
  lane.outcome = {};
  return &lane;
}

void FifoQueues::GiveUp(Lane& lane, uint64_t lane_id) {
  Erase(*lane.queue, [&](Attempt& attempt) {
    if (attempt.lane != lane_id) return false;
    for (Asker& asker : attempt.askers) asker.responder.Fail(absl::CancelledError("the caller gave this request up"));
    return true;
  });
  Flush(*lane.queue);
}

void FifoQueues::Wait(Lane& lane, Line& line, Attempt attempt, const QueueRequest& message, absl::Time now,
                      Asker asker) {
  attempt.lane = message.lane;
  attempt.sequence = message.sequence;
  attempt.since = now;
  attempt.deadline = DeadlineOf(message, now);
  attempt.askers.push_back(std::move(asker));
  line.push_back(std::move(attempt));
  Flush(*lane.queue);
  Expire(now);
}

void FifoQueues::Enqueue(ConnectionId connection, const QueueRequest& message, ByteSpan element, absl::Time now,
                         Responder responder) {
  if (absl::Status status = CheckElement(message, element.size()); !status.ok())
    return responder.Fail(std::move(status));
  Lane* const lane = Begin(connection, message, now, responder);
  if (lane == nullptr) return;
  Queue& queue = *lane->queue;
  if (queue.closed) {
    Attempt refused{.lane = message.lane, .sequence = message.sequence};
    refused.askers.push_back({connection, std::move(responder)});
    return Finish(queue, refused, absl::CancelledError(absl::StrCat("queue '", queue.spec.name, "' is closed")));
  }
  Attempt attempt;
  attempt.element = std::make_shared<const std::vector<std::byte>>(element.begin(), element.end());
  Wait(*lane, queue.enqueues, std::move(attempt), message, now, {connection, std::move(responder)});
}

void FifoQueues::Dequeue(ConnectionId connection, const QueueRequest& message, absl::Time now, Responder responder) {
  const auto known = lanes_.find(message.lane);
  if (known != lanes_.end())
    if (absl::Status status = ValidateDequeue(known->second.queue->spec, message.count); !status.ok())
      return responder.Fail(std::move(status));
  Lane* const lane = Begin(connection, message, now, responder);
  if (lane == nullptr) return;
  Attempt attempt;
  attempt.count = message.count;
  attempt.small_batch = message.small_batch;
  Wait(*lane, lane->queue->dequeues, std::move(attempt), message, now, {connection, std::move(responder)});
}

void FifoQueues::Close(ConnectionId connection, const QueueRequest& message, absl::Time now, Responder responder) {
  Lane* const lane = Begin(connection, message, now, responder);
  if (lane == nullptr) return;
  Queue& queue = *lane->queue;
  queue.closed = true;
  if (message.cancel_pending) {
    Erase(queue, [&](Attempt& attempt) {
      if (attempt.element == nullptr) return false;
      Finish(queue, attempt,
             absl::CancelledError(
                 absl::StrCat("queue '", queue.spec.name, "' was closed, and waiting enqueues cancelled")));
      return true;
    });
  }
  Flush(queue);
  Attempt closing{.lane = message.lane, .sequence = message.sequence};
  closing.askers.push_back({connection, std::move(responder)});
  Finish(queue, closing, absl::OkStatus());
}

void FifoQueues::Size(const QueueRequest& message, absl::Time now, Responder responder) {
  const auto lane = lanes_.find(message.lane);
  if (lane == lanes_.end()) return responder.Fail(UnknownLane());
  lane->second.heard = now;
  const Queue& queue = *lane->second.queue;
  responder.Send(Encode(QueueReply{.size = queue.elements.size(), .closed = queue.closed}));
}

void FifoQueues::Flush(Queue& queue) {
  for (bool moved = true; moved;) {
    moved = false;
    while (!queue.enqueues.empty() && queue.elements.size() < queue.spec.capacity) {
      Attempt& attempt = queue.enqueues.front();
      queue.elements.push_back(std::move(attempt.element));
      ++queue.enqueued;
      Finish(queue, attempt, absl::OkStatus());
      queue.enqueues.pop_front();
      moved = true;
    }
    while (!queue.dequeues.empty() && Serve(queue, queue.dequeues.front())) {
      if (queue.dequeues.front().askers.empty()) queue.dequeues.pop_front();
      moved = true;
    }
  }
}

bool FifoQueues::Serve(Queue& queue, Attempt& attempt) {
  bool moved = false;
  for (; attempt.taken.size() < attempt.count && !queue.elements.empty(); moved = true) {
    attempt.taken.push_back(std::move(queue.elements.front()));
    queue.elements.pop_front();
  }
  const bool last = queue.closed && queue.enqueues.empty() && queue.elements.empty();
  if (attempt.taken.size() == attempt.count || (last && attempt.small_batch && !attempt.taken.empty())) {
    const std::vector<Bytes> taken = std::exchange(attempt.taken, {});
    queue.dequeued += taken.size();
    Finish(queue, attempt, absl::OkStatus(), taken.size(), Batch(queue, taken));
    return true;
  }
  if (!last) return moved;
  PutBack(queue, attempt);
  Finish(queue, attempt,
         absl::OutOfRangeError(absl::StrCat("queue '", queue.spec.name, "' is closed and ",
                                            queue.elements.empty() ? "used up: " : "has too few elements: ",
                                            attempt.count, " asked for, ", queue.elements.size(), " there")));
  return true;
}

void FifoQueues::Finish(Queue& queue, Attempt& attempt, absl::Status status, uint64_t elements, Bytes bulk) {
  Outcome outcome{attempt.sequence, std::move(status), "", std::move(bulk)};
  if (outcome.status.ok()) outcome.control = Encode(QueueReply{elements, queue.elements.size(), queue.closed});
  for (Asker& asker : std::exchange(attempt.askers, {})) Answer(outcome, std::move(asker.responder));
  // If the lane was forgotten meanwhile, nobody asks for the outcome any more.
  if (const auto lane = lanes_.find(attempt.lane); lane != lanes_.end()) lane->second.outcome = std::move(outcome);
}

void FifoQueues::Answer(const Outcome& outcome, Responder responder) {
  if (!outcome.status.ok()) return responder.Fail(outcome.status);
  if (outcome.bulk == nullptr || outcome.bulk->empty()) return responder.Send(outcome.control);
  const std::array<ByteSpan, 1> bulk = {ByteSpan(*outcome.bulk)};
  responder.Send(outcome.control, bulk, outcome.bulk);
}

FifoQueues::Bytes FifoQueues::Batch(const Queue& queue, const std::vector<Bytes>& elements) {
  if (elements.size() == 1) return elements[0];
  auto batch = std::make_shared<std::vector<std::byte>>(elements.size() * queue.element_bytes);
  size_t to = 0;
  size_t from = 0;
  for (const QueueComponent& component : queue.spec.components) {
    const size_t bytes = ComponentBytes(component);
    if (bytes == 0) continue;
    for (const Bytes& element : elements) {
      std::memcpy(batch->data() + to, element->data() + from, bytes);
      to += bytes;
    }
    from += bytes;
  }
  return batch;
}

void FifoQueues::PutBack(Queue& queue, Attempt& attempt) {
  queue.elements.insert(queue.elements.begin(), attempt.taken.begin(), attempt.taken.end());
  attempt.taken.clear();
}

void FifoQueues::Erase(Queue& queue, absl::FunctionRef<bool(Attempt& attempt)> gone) {
  for (Line* line : {&queue.enqueues, &queue.dequeues}) {
    for (auto attempt = line->begin(); attempt != line->end();) {
      if (!gone(*attempt)) {
        ++attempt;
        continue;
      }
      PutBack(queue, *attempt);
      attempt = line->erase(attempt);
    }
  }
}

void FifoQueues::Disconnect(ConnectionId connection, absl::Time now) {
  for (auto& [name, queue] : queues_) {
    Erase(queue, [connection](Attempt& attempt) {
      std::erase_if(attempt.askers, [connection](const Asker& asker) { return asker.connection == connection; });
      return attempt.askers.empty();
    });
    Flush(queue);
  }
  for (auto& [id, lane] : lanes_)
    if (lane.connections.erase(connection) > 0 && lane.connections.empty()) lane.disconnected_at = now;
}

absl::Time FifoQueues::SilentAt(const Attempt& attempt) const {
  const auto lane = lanes_.find(attempt.lane);
  if (lane == lanes_.end()) return absl::InfinitePast();
  return lane->second.heard + FifoQueuesOptions::kLaneSilence;
}

void FifoQueues::Expire(absl::Time now) {
  for (auto& [name, queue] : queues_) {
    Erase(queue, [&, &queue = queue](Attempt& attempt) {
      if (attempt.deadline > now) {
        if (SilentAt(attempt) > now) return false;
        // Not finished: a caller that was only stopped asks again, and starts afresh.
        for (Asker& asker : attempt.askers)
          asker.responder.Fail(absl::UnavailableError(absl::StrCat(
              options_.task, " has heard nothing for ", absl::FormatDuration(FifoQueuesOptions::kLaneSilence))));
        return true;
      }
      PutBack(queue, attempt);
      Finish(queue, attempt,
             absl::DeadlineExceededError(absl::StrCat(
                 "queue '", queue.spec.name, "' ", attempt.element != nullptr ? "had no room" : "had too few elements",
                 " within ", absl::FormatDuration(absl::Floor(attempt.deadline - attempt.since, absl::Milliseconds(1))),
                 ": ",
                 attempt.element != nullptr
                     ? absl::StrCat(queue.elements.size(), " of ", queue.spec.capacity, " there")
                     : absl::StrCat(attempt.count, " asked for, ", queue.elements.size(), " there"))));
      return true;
    });
    Flush(queue);
  }
}

absl::Time FifoQueues::NextDeadline() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [name, queue] : queues_)
    for (const Line* line : {&queue.enqueues, &queue.dequeues})
      for (const Attempt& attempt : *line) next = std::min({next, attempt.deadline, SilentAt(attempt)});
  return next;
}

void FifoQueues::FailAll(const absl::Status& status) {
  for (auto& [name, queue] : queues_)
    Erase(queue, [&](Attempt& attempt) {
      for (Asker& asker : attempt.askers) asker.responder.Fail(status);
      return true;
    });
}

std::vector<FifoQueues::View> FifoQueues::Describe() const {
  std::vector<View> views;
  for (const auto& [name, queue] : queues_) {
    View view{queue.spec, queue.elements.size(), queue.element_bytes, queue.closed, queue.enqueued, queue.dequeued, {}};
    const auto add = [&](const Attempt& attempt, std::string what) {
      const auto lane = lanes_.find(attempt.lane);
      view.waiting.push_back({lane != lanes_.end() ? lane->second.task : "", std::move(what), attempt.since});
    };
    for (const Attempt& attempt : queue.enqueues)
      add(attempt, absl::StrCat("queue '", name, "' to have room (", queue.elements.size(), " of ", queue.spec.capacity,
                                " elements)"));
    for (const Attempt& attempt : queue.dequeues)
      add(attempt, absl::StrCat("queue '", name, "' to have ", attempt.count - attempt.taken.size(), " more elements"));
    views.push_back(std::move(view));
  }
  return views;
}

}  // namespace muster
