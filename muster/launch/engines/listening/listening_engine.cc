#include "muster/launch/engines/listening/listening_engine.h"

#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/status_macros.h"
#include "muster/launch/engines/listening/node_addresses.h"

namespace muster {
namespace {

bool CannotConnect(const std::string& said) {
  return absl::StrContains(said, kCannotReachSupervisor) || absl::StrContains(said, kCannotReadRendezvous);
}

std::vector<std::string> WithPort(const std::vector<std::string>& addresses, uint16_t port) {
  std::vector<std::string> with;
  for (const std::string& address : addresses)
    with.push_back(absl::StrContains(address, ':') ? absl::StrCat("[", address, "]:", port)
                                                   : absl::StrCat(address, ":", port));
  return with;
}

}  // namespace

ListeningEngine::ListeningEngine(ListeningEngineOptions options, std::unique_ptr<AgentStarter> starter, FdLoop& loop,
                                 const Clock& clock)
    : options_(std::move(options)), loop_(loop), clock_(clock), starter_(std::move(starter)) {}

ListeningEngine::~ListeningEngine() {
  starter_.reset();
  if (listener_ != nullptr && !options_.rendezvous_is_given) unlink(options_.rendezvous_file.c_str());
}

absl::Status ListeningEngine::Start(EngineEvents& events) {
  events_ = &events;
  const std::set<std::string> hosts(options_.hosts.begin(), options_.hosts.end());
  rendezvous_ = NewRendezvous({});
  if (options_.goes_on || options_.rendezvous_is_given) {
    ASSIGN_OR_RETURN(rendezvous_, ReadRendezvous(options_.rendezvous_file));
  }
  ASSIGN_OR_RETURN(listener_, AgentListener::Listen(
                                  hosts, rendezvous_.secret, loop_, clock_,
                                  [this](const std::string& host, Socket socket, const std::string& rest) {
                                    OnArrival(host, std::move(socket), rest);
                                  },
                                  options_.ports));
  if (!options_.rendezvous_is_given) {
    rendezvous_.addresses =
        WithPort(AddressesTowards(options_.towards.empty() ? options_.hosts : options_.towards), listener_->port());
    RETURN_IF_ERROR(WriteRendezvous(options_.rendezvous_file, rendezvous_));
  }
  for (const std::string& host : options_.hosts)
    nodes_[host].found_by = options_.goes_on ? clock_.Now() + kFindPatience : absl::InfinitePast();
  RETURN_IF_ERROR(starter_->Begin({.file = options_.rendezvous_file, .rendezvous = rendezvous_}, *this));
  if (options_.goes_on) return absl::OkStatus();
  RETURN_IF_ERROR(starter_->StartAll(options_.hosts));
  NoteStart(options_.hosts);
  return absl::OkStatus();
}

void ListeningEngine::NoteStart(const std::vector<std::string>& hosts) {
  for (const std::string& host : hosts) {
    Node& node = nodes_.at(host);
    node.started = true;
    node.came = false;
    node.ended_at = absl::InfiniteFuture();
    node.patience_ends = clock_.Now() + options_.start_patience;
    node.said.clear();
  }
}

void ListeningEngine::Connect(const std::string& host) {
  MUSTER_CHECK(events_ != nullptr);
  Node& node = nodes_.at(host);
  node.wanted = true;
  if (node.came) node.patience_ends = clock_.Now() + kReturnPatience;
  asked_.push_back(host);
}

void ListeningEngine::OnArrival(const std::string& host, Socket socket, const std::string& rest) {
  Node& node = nodes_.at(host);
  node.wanted = false;
  node.came = true;
  node.found_by = absl::InfinitePast();
  starter_->NoteArrival(host);
  const auto carrier = std::make_shared<Socket>(std::move(socket));
  events_->OnStream(host, {.in_fd = carrier->fd(),
                           .out_fd = carrier->fd(),
                           .read_already = rest,
                           .key = KeyOfHost(rendezvous_.secret, host),
                           .address = PeerAddress(carrier->fd()),
                           .carrier = carrier,
                           .last_words = [this, host] {
                             const std::string& said = nodes_.at(host).said;
                             return said.empty() ? "" : absl::StrCat(" (", said, ")");
                           }});
}

// Why it can't connect says more than that it gives up at last.
void ListeningEngine::OnSaid(const std::string& host, const std::string& line) {
  if (Node& node = nodes_.at(host); !CannotConnect(node.said)) node.said = line;
}

void ListeningEngine::OnSaidOfAll(const std::vector<std::string>& hosts, const std::string& line) {
  for (const std::string& host : hosts)
    if (Node& node = nodes_.at(host); !node.came) node.said = line;
}

// Its agents haven't begun to start then.
void ListeningEngine::OnWaits(const std::vector<std::string>& hosts, const std::string& line) {
  const auto is_awaited = [this](const std::string& host) { return nodes_.at(host).wanted && !nodes_.at(host).came; };
  if (std::none_of(hosts.begin(), hosts.end(), is_awaited)) return;
  options_.note(line);
  for (const std::string& host : hosts) nodes_.at(host).patience_ends = clock_.Now() + options_.start_patience;
}

// What an agent or its system says itself says more than how its end is named.
void ListeningEngine::OnEnded(const std::string& host, const std::string& how) {
  Node& node = nodes_.at(host);
  if (node.said.empty()) node.said = how;
  node.ended_at = std::min(node.ended_at, clock_.Now());
}

absl::Time ListeningEngine::DueOf(const Node& node) {
  if (!node.wanted) return absl::InfiniteFuture();
  if (!node.started) return node.came ? node.patience_ends : node.found_by;
  return std::min(node.ended_at + kLastWords, node.patience_ends);
}

absl::Time ListeningEngine::deadline() const {
  if (!asked_.empty()) return absl::InfinitePast();
  absl::Time first = listener_ == nullptr ? absl::InfiniteFuture() : listener_->deadline();
  for (const auto& [host, node] : nodes_) first = std::min(first, DueOf(node));
  return std::min(first, starter_->deadline());
}

void ListeningEngine::OnTime() {
  if (listener_ == nullptr) return;
  for (const std::string& host : std::exchange(asked_, {})) listener_->Want(host);
  listener_->OnTime();
  for (auto& [host, node] : nodes_)
    if (clock_.Now() >= DueOf(node)) Care(host, node);
  starter_->OnTime();
}

// An agent that has been there is replaced at once. One that never came would not come the next time either: whoever
// wants it hears why, and may ask again.
void ListeningEngine::Care(const std::string& host, Node& node) {
  if (!node.started || node.came) return StartAgain(host, node);
  if (node.ended_at < absl::InfiniteFuture()) return Fail(host, node, starter_->Explain(host, node.said));
  starter_->EndStart(host);
  Fail(host, node,
       absl::UnavailableError(absl::StrCat(
           host, ": its agent hasn't connected within ", absl::FormatDuration(options_.start_patience),
           "; can the node reach this host?", node.said.empty() ? "" : absl::StrCat(" (", node.said, ")"))));
}

void ListeningEngine::StartAgain(const std::string& host, Node& node) {
  const absl::Status started = starter_->StartAgain(host);
  if (started.ok()) return NoteStart({host});
  const absl::StatusCode code = absl::IsAborted(started) ? absl::StatusCode::kAborted : absl::StatusCode::kUnavailable;
  Fail(host, node, absl::Status(code, absl::StrCat(host, ": ", std::string(started.message()))));
}

void ListeningEngine::Fail(const std::string& host, Node& node, const absl::Status& why) {
  node.wanted = false;
  node.started = false;
  node.came = false;
  starter_->Forget(host);
  events_->OnNoStream(host, why);
}

}  // namespace muster
