#include "muster/launch/agent_server/agent_server.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/net/accept_again.h"
#include "muster/base/net/free_ports.h"
#include "muster/base/status_macros.h"
#include "muster/launch/backends/local/guard.h"
#include "muster/launch/backends/local/local_backend.h"
#include "muster/launch/backends/local/run_processes.h"
#include "muster/launch/system/random_hex.h"
#include "muster/launch/task/device_pool.h"

namespace muster {
namespace {

constexpr absl::Duration kUsageEvery = absl::Seconds(1);
// The kernel doesn't count the time that a machine is suspended when it waits. So no wait is longer, and limits hold to
// this much.
constexpr absl::Duration kLongestWait = absl::Seconds(1);
// A stream over TCP over which nothing comes for that much longer than a supervisor may be silent is dialled anew: the
// network may have forgotten it.
constexpr absl::Duration kSilentTcp = absl::Seconds(2);
// What is due and can't be done, since a stream takes nothing, isn't tried again at once.
constexpr absl::Duration kShortestWait = absl::Milliseconds(20);

// Returns whether the process at the other end is this user's or the superuser's.
bool IsOwnPeer(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && (peer.uid == geteuid() || peer.uid == 0);
}

std::string RunIdOf(const std::string& agent_id) { return agent_id.substr(0, 16); }

}  // namespace

absl::StatusOr<AgentServer::Place> AgentServer::Open(AgentFolder folder) {
  MUSTER_CHECK(folder.lock_fd() >= 0);
  ASSIGN_OR_RETURN(Socket listening, folder.Listen());
  return Place{.folder = std::move(folder), .listening = std::move(listening)};
}

absl::StatusOr<std::unique_ptr<Keeper>> AgentServer::ForkKeeper(const std::string& job, const Place& place,
                                                                std::function<int(std::unique_ptr<Keeper>)> next_life) {
  const std::string id = RandomHex(kAgentIdBytes);
  ASSIGN_OR_RETURN(const std::string before, place.folder.AgentId());
  // First, since what is left of an id that isn't written down any more is never found.
  if (!before.empty()) KillProcessesOfAgent(before);
  RETURN_IF_ERROR(place.folder.SetAgentId(id));
  std::vector<int> kept = place.folder.descriptors();
  kept.push_back(place.listening.fd());
  if (place.until_closed.valid()) kept.push_back(place.until_closed.fd());
  return Keeper::Fork({.title = absl::StrCat(kGuardName, " agent ", job),
                       .agent_id = id,
                       .kept = std::move(kept),
                       .next_life = std::move(next_life)});
}

absl::StatusOr<std::unique_ptr<AgentServer>> AgentServer::Start(AgentServerOptions options, const Place& place,
                                                                std::unique_ptr<Keeper> keeper, FdLoop& loop) {
  RETURN_IF_ERROR(CheckAgentLimits(options.limits));
  std::unique_ptr<AgentServer> server(new AgentServer(std::move(options), place, std::move(keeper), loop));
  RETURN_IF_ERROR(server->Start());
  return server;
}

AgentServer::AgentServer(AgentServerOptions options, const Place& place, std::unique_ptr<Keeper> keeper, FdLoop& loop)
    : options_(std::move(options)),
      place_(place),
      loop_(loop),
      keeper_(std::move(keeper)),
      journal_({.keep = [this](const ValueChanges& changes) { keeper_->KeepValues(changes); },
                .answered = [this](absl::Time answered) { RenewLimit(answered); }}),
      executor_({.address = options_.address,
                 .cluster_file = place_.folder.PathOf(AgentFolder::kClusterName),
                 .heard_file = place_.folder.PathOf(AgentFolder::kHeardName),
                 .muster = options_.muster,
                 .devices = DevicePoolIn(options_.backend.environment),
                 .keep = [this](const ValueChanges& changes) { keeper_->KeepValues(changes); },
                 .settle = options_.supervisor_in_job ? ExitsAtSignal::kSettle : absl::ZeroDuration(),
                 .clock = options_.clock},
                loop, [this](BackendEvents& events) { return MakeBackend(events); }),
      link_({.job = options_.job, .limits = options_.limits}, Record(), journal_, executor_),
      usage_report_(options_.backend.environment, loop, *options_.clock) {}

AgentServer::~AgentServer() {
  if (!done_) Finish();
}

absl::Status AgentServer::Start() {
  ASSIGN_OR_RETURN(CounterFile heard, CounterFile::Open(place_.folder.PathOf(AgentFolder::kHeardName)));
  heard_.emplace(std::move(heard));
  RETURN_IF_ERROR(executor_.Start(link_, Earlier()));
  if (keeper_->ends_at() == absl::InfiniteFuture())
    RenewLimit(options_.clock->Now() + FirstPatience() - options_.limits.grace);
  link_.Resume();
  executor_.TellEnds();
  loop_.Watch(keeper_->fd(), POLLIN, [this](short) { OnKeeperGone(); });
  loop_.Watch(place_.listening.fd(), POLLIN, [this](short) { Accept(); });
  listens_ = true;
  if (!options_.rendezvous.empty())
    dialer_.emplace(
        SupervisorDialerOptions{
            .rendezvous = options_.rendezvous,
            .host = options_.host,
            .connected = [this](Socket socket, const std::string& key) { Add(std::move(socket), key); },
            .log = options_.log},
        loop_, *options_.clock);
  return absl::OkStatus();
}

AgentRecord AgentServer::Record() const {
  AgentRecord record = KeptJournal::Read(keeper_->kept());
  record.agent_id = absl::HexStringToBytes(keeper_->agent_id());
  record.life = keeper_->life();
  record.answered = options_.clock->Now() + FirstPatience() - options_.limits.grace;
  if (keeper_->ends_at() != absl::InfiniteFuture())
    record.answered = options_.clock->Now() + (keeper_->ends_at() - BootClock().Now()) - options_.limits.grace;
  return record;
}

EarlierLives AgentServer::Earlier() {
  EarlierLives earlier{.kept = keeper_->kept(), .processes = {}};
  for (const AdoptedTask& task : keeper_->adopted())
    if (const auto launch = BackendExecutor::LaunchOf(task.label)) earlier.processes[*launch] = task.child.pid;
  return earlier;
}

void AgentServer::RenewLimit(absl::Time answered) {
  if (heard_.has_value()) heard_->Count();
  keeper_->EndAt(BootClock().Now() + (answered + options_.limits.grace - options_.clock->Now()));
}

void AgentServer::EndNow() {
  link_.EndNow(options_.clock->Now());
  TellEnding();
}

void AgentServer::OnSignal() {
  executor_.OnSignal();
  if (!options_.supervisor_in_job || !link_.attached().has_value() || std::exchange(was_signalled_, true))
    return EndNow();
  link_.SendNote("a signal asks the agent to end; it waits for the supervisor to end the tasks");
}

void AgentServer::TellEnding() {
  if (link_.ending() && !std::exchange(told_ending_, true)) keeper_->SetEnding();
}

// The kernel has killed the tasks with it, and Finish what they have left behind.
void AgentServer::OnKeeperGone() {
  if (done_) return;
  lost_keeper_ = true;
  Finish();
}

// The id of the run is for control groups alone, which another agent of the run on this machine must not share.
std::unique_ptr<Backend> AgentServer::MakeBackend(BackendEvents& events) {
  BackendOptions options = options_.backend;
  options.run_id = RunIdOf(keeper_->agent_id());
  options.note = [this](const std::string& line) { link_.SendNote(line); };
  options.address = kEveryAddress;
  options.clock = options_.clock;
  return std::make_unique<LocalBackend>(options, loop_, events, keeper_.get());
}

void AgentServer::Accept() {
  while (true) {
    Socket socket(accept4(place_.listening.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid() && ShouldAcceptLater(errno)) {
      loop_.SetEvents(place_.listening.fd(), 0);
      accept_again_ = options_.clock->Now() + kAcceptAgainAfter;
    }
    if (!socket.valid()) return;
    if (IsOwnPeer(socket.fd())) Add(std::move(socket), "");
  }
}

void AgentServer::Add(Socket socket, const std::string& key) {
  MakeRoom();
  Stream& stream = streams_.emplace_back();
  stream.socket = std::move(socket);
  stream.key = key;
  stream.heard = options_.clock->Now();
  const std::string token = key.empty() ? TokenOfLocalStream(options_.job) : key;
  stream.connection = std::make_unique<AgentConnection>(
      loop_, stream.socket.fd(), stream.socket.fd(),
      std::make_unique<ServerHandshake>(HandshakeIdentity{.token = {token}}, RandomNonce()), OwnerOf(stream));
}

void AgentServer::MakeRoom() {
  const auto waits = [this](const Stream& stream) { return !IsAttached(stream); };
  while (static_cast<size_t>(std::count_if(streams_.begin(), streams_.end(), waits)) >= kWaiting) {
    const auto oldest = std::find_if(streams_.begin(), streams_.end(), waits);
    Erase(oldest);
  }
}

std::list<AgentServer::Stream>::iterator AgentServer::Erase(std::list<Stream>::iterator stream) {
  if (!stream->ended && stream->id) link_.OnStreamEnd(*stream->id);
  if (!stream->key.empty()) dialer_->DialAgain(stream->was_attached);
  return streams_.erase(stream);
}

StreamOwner AgentServer::OwnerOf(Stream& stream) {
  return {.passed =
              [this, &stream](const std::string& hellos) {
                stream.id =
                    link_.OnStream(options_.clock->Now(),
                                   stream.key.empty() ? std::nullopt : std::optional(FrameMac(stream.key, hellos)));
              },
          .take =
              [this, &stream](ByteSpan bytes) {
                stream.heard = options_.clock->Now();
                return link_.OnBytes(stream.heard, *stream.id, bytes);
              },
          .next = [this, &stream] { return link_.NextFrame(options_.clock->Now(), *stream.id); },
          .ended =
              [this, &stream](const absl::Status&) {
                stream.ended = true;
                if (stream.id) link_.OnStreamEnd(*stream.id);
              }};
}

bool AgentServer::IsSilent(const Stream& stream) const {
  return !stream.key.empty() && looked_ > stream.heard + options_.limits.suspect + kSilentTcp;
}

void AgentServer::OnTime() {
  if (done_) return;
  looked_ = options_.clock->Now();
  if (looked_ >= accept_again_) {
    accept_again_ = absl::InfiniteFuture();
    loop_.SetEvents(place_.listening.fd(), POLLIN);
  }
  if (dialer_.has_value() && !link_.ending()) dialer_->OnTime();
  link_.OnTime(looked_);
  TellEnding();
  executor_.OnTime();
  executor_.Update();
  SendUsage();
  CareForStreams();
  if (link_.stopped() || (link_.ending() && executor_.idle())) Finish();
}

absl::Time AgentServer::deadline() const {
  const absl::Time next =
      std::min({link_.deadline(), executor_.deadline(), accept_again_, looked_ + kLongestWait,
                dialer_.has_value() && !link_.ending() ? dialer_->deadline() : absl::InfiniteFuture(),
                link_.attached() && !executor_.idle() ? next_usage_ : absl::InfiniteFuture()});
  return std::max(next, looked_ + kShortestWait);
}

void AgentServer::SendUsage() {
  if (!link_.attached() || executor_.idle() || looked_ < next_usage_) return;
  next_usage_ = looked_ + kUsageEvery;
  const UsageEntry usage = usage_report_.Read(executor_.RunningLaunches());
  if (!usage.launches.empty()) link_.SendUsage(usage);
}

void AgentServer::CareForStreams() {
  for (auto stream = streams_.begin(); stream != streams_.end();) {
    stream->connection->Write();
    stream->was_attached |= IsAttached(*stream);
    const bool is_useless = stream->id && !link_.Wants(*stream->id) && stream->connection->written();
    if (!stream->ended && !is_useless && !IsSilent(*stream)) {
      ++stream;
      continue;
    }
    stream = Erase(stream);
  }
}

// The streams end last, which tells the supervisor that nothing is left.
void AgentServer::Finish() {
  if (std::exchange(listens_, false)) {
    loop_.Forget(place_.listening.fd());
    loop_.Forget(keeper_->fd());
  }
  dialer_.reset();
  executor_.Close();
  if (link_.stopped() && options_.job_ended) options_.job_ended();
  // One whose starter has gone isn't asked for by anybody any more; without its guard, something of it may be left.
  place_.folder.Remove(/*all=*/link_.stopped() || (place_.until_closed.valid() && !lost_keeper_));
  streams_.clear();
  keeper_->Goodbye();  // last: should this process be killed before, its next life ends what it hasn't
  done_ = true;
}

}  // namespace muster
