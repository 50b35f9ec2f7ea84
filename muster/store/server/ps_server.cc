#include "muster/store/server/ps_server.h"

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/os/stop_signal.h"
#include "muster/base/status_macros.h"
#include "muster/store/messages/incarnation.h"
#include "muster/store/server/ask_loop.h"
#include "muster/store/server/start_notice.h"
#include "muster/store/server/store_metrics.h"
#include "muster/store/service/store_status.h"

namespace muster {
namespace {

// A page that takes longer is useless to its reader.
constexpr absl::Duration kStatusPatience = absl::Seconds(3);
constexpr absl::Duration kNamePause = absl::Seconds(1);  // between two looks for the own name

StoreOptions Complete(StoreOptions options, BackgroundThread& background, ArenaListener* port, Track* track,
                      Tracer* tracer) {
  options.incarnation = NewIncarnation();
  options.files = &PosixFileSystem();
  Track* const saver = tracer != nullptr ? tracer->AddTrack("saver") : nullptr;
  options.background = [&background, saver](absl::AnyInvocable<void()> task) {
    background.Run([saver, task = std::move(task)]() mutable {
      const Track::Span save(saver, Activity::kCheckpoint);
      task();
    });
  };
  options.port = port;
  options.track = track;
  return options;
}

}  // namespace

PsServer::PsServer(PsServerOptions options, std::unique_ptr<ArenaListener> port)
    : task_(options.store.task),
      has_launcher_(options.has_launcher),
      leave_after_(options.leave_after),
      track_(options.tracer != nullptr ? options.tracer->AddTrack("service") : nullptr),
      transport_(MakeTransport(options.transport, loop_, std::move(options.token))),
      port_(std::move(port)),
      service_(loop_, Complete(std::move(options.store), background_, port_.get(), track_, options.tracer)) {}

PsServer::~PsServer() = default;

absl::StatusOr<std::unique_ptr<PsServer>> PsServer::Start(PsServerOptions options) {
  const std::string address = options.address;
  const absl::Duration name_patience = options.name_patience;
  const std::optional<StatusAddress> status_address = options.status_address;
  const std::string token = options.token.secret;
  auto port = options.direct ? ArenaListener::OpenOrWarn() : nullptr;
  auto server = std::unique_ptr<PsServer>(new PsServer(std::move(options), std::move(port)));
  RETURN_IF_ERROR(server->service_.Recover());
  RETURN_IF_ERROR(server->Listen(address, name_patience));
  server->service_.SetListenerStats([listener = server->listener_.get()] { return listener->stats(); });
  if (status_address && server->track_ != nullptr) RETURN_IF_ERROR(server->ShowStatus(*status_address, token));
  return server;
}

absl::Status PsServer::Listen(const std::string& address, absl::Duration name_patience) {
  const absl::Time until = loop_.Now() + name_patience;
  for (;;) {
    absl::StatusOr<std::unique_ptr<Listener>> listener = transport_->Listen(address, service_);
    if (listener.ok()) {
      listener_ = *std::move(listener);
      return absl::OkStatus();
    }
    if (!absl::IsUnavailable(listener.status())) return listener.status();
    // With a patience it is no mistake of the user's, and the next start may find the name.
    if (loop_.Now() >= until)
      return name_patience > absl::ZeroDuration() ? listener.status()
                                                  : absl::InvalidArgumentError(listener.status().message());
    loop_.RunUntil([] { return false; }, std::min(until, loop_.Now() + kNamePause));
  }
}

absl::Status PsServer::ShowStatus(const StatusAddress& address, const std::string& token) {
  StatusSource source{.title = task_};
  source.status = [this] {
    return AskLoop(
        loop_, [this] { return StatusJson(service_.MakeView()); }, kStatusPatience);
  };
  source.text = [this](const std::string& status) -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(std::string text, StatusTable(status));
    const std::string times = StepTimesText(track_->times().Table(task_, track_->name()));
    return times.empty() ? text : absl::StrCat(text, "\nwhere the time of a push or pull goes\n", times);
  };
  source.metrics = [this](const std::string& status) { return StoreMetricsText(status, *track_); };
  ASSIGN_OR_RETURN(status_server_, StatusServer::Start(address, std::move(source), token));
  LogInfo(task_, " shows its status at ", status_server_->url());
  return absl::OkStatus();
}

absl::Status PsServer::Join() {
  bool is_left = false;
  StopSignal signal([&] {
    loop_.Post([&] {
      if (!has_launcher_ || !service_.IsInUse()) return service_.Shutdown("a signal");
      LogInfo(task_, " was asked to end by a signal while others train: it serves them for ",
              absl::FormatDuration(leave_after_), " more, in which they may end, too");
      // A worker that only loses its connection meanwhile finds the model at the next start: only "done" ends training.
      loop_.CallAt(loop_.Now() + leave_after_, [&] { is_left = true; });
    });
  });
  // Logged only now, because a reader may answer it with the signal.
  LogInfo(task_, " serves at ", address());
  StartNotice notice(loop_.Now());
  while (!loop_.RunUntil([&] { return is_left || service_.finished(); }, notice.next()))
    notice.Check(loop_.Now(), service_.MakeView());
  status_server_.reset();  // nobody answers its questions any more
  if (is_left)
    return absl::UnavailableError(
        absl::StrCat(task_, " was asked to end by a signal while others train: it leaves training to its next start"));
  return service_.outcome();
}

}  // namespace muster
