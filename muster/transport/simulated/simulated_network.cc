#include "muster/transport/simulated/simulated_network.h"

#include <algorithm>
#include <utility>

#include "muster/transport/loopback/loopback_channel.h"
#include "muster/transport/loopback/loopback_listener.h"

namespace muster {
namespace {

// The number of the second of two equal requests: no call has it, so its answer reaches nothing.
constexpr uint64_t kDuplicate = uint64_t{1} << 63;

struct SimulatedLink final : LoopbackLink {
  uint64_t number = 0;
  std::string address;
  absl::Time last_to_client = absl::InfinitePast();  // arrival of the last message on its way
  absl::Time last_to_server = absl::InfinitePast();
  uint64_t messages = 0;
  std::map<uint64_t, Fault> reply_faults;  // by request
};

SimulatedLink& Of(const LoopbackNetwork::Link& link) { return static_cast<SimulatedLink&>(*link); }

template <typename End>
SimulatedHost* HostOf(const std::shared_ptr<End>& end) {
  return end == nullptr ? nullptr : static_cast<SimulatedHost*>(end->party.host.get());
}

template <typename End>
SimulatedProcess* ProcessOf(const std::shared_ptr<End>& end) {
  const SimulatedHost* host = HostOf(end);
  return host == nullptr ? nullptr : host->process;
}

template <typename End>
bool IsDead(const std::shared_ptr<End>& end) {
  const SimulatedProcess* process = ProcessOf(end);
  return process != nullptr && !process->alive();
}

// The names of its processes; empty: they have none.
struct Names {
  std::string client;
  std::string server;
};

Names NamesOf(const LoopbackLink& link) {
  const SimulatedProcess* client = ProcessOf(link.client);
  const SimulatedProcess* server = ProcessOf(link.server);
  if (client == nullptr || server == nullptr) return {};
  return {client->name(), server->name()};
}

bool IsBetween(const LoopbackLink& link, const std::string& one, const std::string& other) {
  const Names names = NamesOf(link);
  return (names.client == one && names.server == other) || (names.client == other && names.server == one);
}

std::vector<std::byte> Gather(absl::Span<const ByteSpan> segments) {
  std::vector<std::byte> bytes;
  for (const ByteSpan segment : segments) bytes.insert(bytes.end(), segment.begin(), segment.end());
  return bytes;
}

}  // namespace

// Between the shortest and the longest, short ones more often; drawn for each message by its number, so that a schedule
// with one fault fewer keeps most of its delays.
absl::Duration SimulatedNetwork::Delay(uint64_t connection, uint64_t message) const {
  const uint64_t drawn = HashNumbers(seed_, connection, message);
  const double fraction = static_cast<double>(drawn >> 40) / static_cast<double>(1 << 24);
  const absl::Duration usual = options_.shortest + (options_.longest - options_.shortest) * (fraction * fraction);
  if (options_.slow_one_in == 0 || drawn % options_.slow_one_in != 0) return usual;
  return usual + options_.slow * fraction;
}

absl::Time SimulatedNetwork::PartedUntil(const LoopbackLink& link, bool to_server) const {
  if (parted_.empty()) return absl::InfinitePast();
  const Names names = NamesOf(link);
  const auto found =
      parted_.find(to_server ? std::pair(names.client, names.server) : std::pair(names.server, names.client));
  return found == parted_.end() ? absl::InfinitePast() : found->second;
}

absl::Time SimulatedNetwork::ArrivalAtServer(const Link& link) {
  return Arrival(link, /*to_server=*/true, Of(link).last_to_server);
}

absl::Time SimulatedNetwork::ArrivalAtClient(const Link& link) {
  return Arrival(link, /*to_server=*/false, Of(link).last_to_client);
}

absl::Time SimulatedNetwork::Arrival(const Link& link, bool to_server, absl::Time& last) {
  const absl::Time leaves = std::max(loop_.Now(), PartedUntil(*link, to_server));
  const absl::Duration apart = options_.longest == absl::ZeroDuration() ? absl::ZeroDuration() : absl::Nanoseconds(1);
  last = std::max(last + apart, leaves + Delay(Of(link).number, ++Of(link).messages));
  return last;
}

LoopbackNetwork::Link SimulatedNetwork::MakeLink() {
  auto link = std::make_shared<SimulatedLink>();
  link->number = ++last_link_;
  return link;
}

void SimulatedNetwork::Open(const Link& link, const std::string& address) {
  Of(link).address = address;
  // The kernel of the server's host accepts, not the server: no process can be asked for its pauses here.
  loop_.CallAt(ArrivalAtServer(link), [this, link, address] {
    if (!link->client_open || IsDead(link->client)) return;
    SimulatedHost* host = HostOf(link->client);
    if (host != nullptr && host->refused_until[address] > loop_.Now())
      return BreakAtClient(link, ArrivalAtClient(link));
    LoopbackNetwork::Open(link, address);
    std::erase_if(links_, [](const Link& l) { return !l->client_open && !l->server_open; });
    if (link->server != nullptr) links_.push_back(link);
  });
}

// The network ignores what the dead do while they are unwound; what they had sent is on its way.
void SimulatedNetwork::ToServer(const Link& link, AtServer action) {
  if (IsDead(link->client)) return;
  link->server->mailbox.CallAt(ArrivalAtServer(link), Guard(link, std::move(action)));
}

void SimulatedNetwork::ToClient(const Link& link, AtClient action) {
  if (IsDead(link->server)) return;
  link->client->mailbox.CallAt(ArrivalAtClient(link), Guard(link, std::move(action)));
}

void SimulatedNetwork::Deliver(const Link& link, const std::shared_ptr<LoopbackMessage>& message) {
  DeliverPart(link, message, message->request.control.size() + message->request.bulk_bytes);
}

void SimulatedNetwork::DeliverPart(const Link& link, const std::shared_ptr<LoopbackMessage>& message, size_t bytes) {
  const size_t control_bytes = message->request.control.size();
  if (bytes < control_bytes) return;
  ToServer(link, [link, message](LoopbackListener& listener) { listener.OnControl(link, message); });
  if (message->request.bulk_bytes == 0) return;
  ToServer(link, [link, message, part = bytes - control_bytes](LoopbackListener& listener) {
    listener.OnBulk(link, message, part);
  });
}

void SimulatedNetwork::SendRequest(const Link& link, const std::shared_ptr<LoopbackMessage>& message) {
  {
    MutexLock lock(message->mutex);
    message->taken = Gather(message->bulk);
  }
  const SimulatedHost* host = HostOf(link->client);
  const std::optional<Fault> fault = host == nullptr || host->faults == nullptr
                                         ? std::nullopt
                                         : host->faults->Meet(message->request.method, Of(link).address);
  switch (fault ? fault->kind : FaultKind::kDropReply) {
    case FaultKind::kDropRequest:
      return;
    case FaultKind::kDelayRequest:
      loop_.CallAt(loop_.Now() + fault->delay, [this, link, message] { Deliver(link, message); });
      return;
    case FaultKind::kDuplicateRequest: {
      auto again = std::make_shared<LoopbackMessage>();
      again->id = message->id | kDuplicate;
      again->request = message->request;
      again->time_left = message->time_left;
      again->taken = message->taken;
      Deliver(link, message);
      return Deliver(link, again);
    }
    case FaultKind::kCutRequest: {
      const size_t whole = message->request.control.size() + message->request.bulk_bytes;
      if (whole > 0) DeliverPart(link, message, std::min(fault->bytes, whole - 1));
      return BreakNow(link);
    }
    case FaultKind::kRefuse:
      HostOf(link->client)->refused_until[Of(link).address] = loop_.Now() + fault->delay;
      return BreakNow(link);
    case FaultKind::kDropReply:
    case FaultKind::kDelayReply:
    case FaultKind::kCutReply:
      if (fault) Of(link).reply_faults[message->id] = *fault;
      return Deliver(link, message);
  }
}

void SimulatedNetwork::SendReply(const Link& link, const std::shared_ptr<LoopbackMessage>& request, absl::Status status,
                                 absl::string_view control, absl::Span<const ByteSpan> bulk) {
  const auto send = [this, link, request, status, control = std::string(control), bytes = Gather(bulk)] {
    ToClient(link, [request, status, control, bytes](LoopbackChannel& channel) {
      std::optional<absl::StatusOr<Reply>> reply = request->Take(status, control, {ByteSpan(bytes)});
      if (reply) channel.OnReply(request->id, *std::move(reply));
    });
  };
  // An error isn't an answer that could be lost.
  std::map<uint64_t, Fault>& faults = Of(link).reply_faults;
  const auto met = status.ok() ? faults.find(request->id) : faults.end();
  if (met == faults.end()) return send();
  const Fault fault = met->second;
  faults.erase(met);
  if (fault.kind == FaultKind::kDelayReply) loop_.CallAt(loop_.Now() + fault.delay, send);
  if (fault.kind == FaultKind::kCutReply) BreakNow(link);
}

void SimulatedNetwork::BreakAtClient(const Link& link, absl::Time when) {
  link->client->mailbox.CallAt(when, LoopbackNetwork::Guard(link, AtClient([](LoopbackChannel& c) { c.OnBroken(); })));
}

void SimulatedNetwork::BreakAtServer(const Link& link, absl::Time when) {
  link->server->mailbox.CallAt(when, Guard(link, AtServer([link](LoopbackListener& l) { l.OnClose(*link); })));
}

void SimulatedNetwork::BreakNow(const Link& link) {
  BreakAtClient(link, loop_.Now());
  BreakAtServer(link, ArrivalAtServer(link));
}

void SimulatedNetwork::Cut(const std::string& one, const std::string& other, absl::Duration client_sees,
                           absl::Duration server_sees) {
  for (const Link& link : links_) {
    if (!IsBetween(*link, one, other)) continue;
    BreakAtClient(link, loop_.Now() + client_sees);
    BreakAtServer(link, loop_.Now() + server_sees);
  }
}

void SimulatedNetwork::Part(const std::string& one, const std::string& other, absl::Time until) {
  PartTowards(one, other, until);
  PartTowards(other, one, until);
}

void SimulatedNetwork::PartTowards(const std::string& from, const std::string& to, absl::Time until) {
  absl::Time& parted = parted_[{from, to}];
  parted = std::max(parted, until);
}

void SimulatedNetwork::Close(SimulatedProcess& process) {
  const auto of_process = [&](const LoopbackServer& server) {
    const auto* host = static_cast<const SimulatedHost*>(server.party.host.get());
    return host != nullptr && host->process == &process;
  };
  RemoveIf(of_process);
  for (const Link& link : links_) {
    // What it had sent is still on its way, and the end comes after it.
    if (ProcessOf(link->client) == &process && link->server_open) BreakAtServer(link, ArrivalAtServer(link));
    if (ProcessOf(link->server) == &process && link->client_open) BreakAtClient(link, ArrivalAtClient(link));
  }
  std::erase_if(links_, [](const Link& l) { return !l->client_open && !l->server_open; });
}

}  // namespace muster
