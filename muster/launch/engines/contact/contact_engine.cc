#include "muster/launch/engines/contact/contact_engine.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/files/file_system.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/last_line.h"
#include "muster/launch/project/sha256.h"

namespace muster {
namespace {

constexpr size_t kMostKept = 4 << 10;  // of what the program writes; the beginning is dropped

// A program that carries a stream. Its stderr is read, so that it never waits for a reader.
class StreamCarrier {
 public:
  // `banner`: what the host's shell has printed, for the case that nothing better comes.
  StreamCarrier(PipedProgram program, std::string banner, FdLoop& loop)
      : program_(std::move(program)), loop_(loop), errors_(std::move(banner)) {
    loop_.Watch(program_.stderr_fd(), POLLIN, [this](short) { ReadErrors(); });
  }
  ~StreamCarrier() { loop_.Forget(program_.stderr_fd()); }
  StreamCarrier(const StreamCarrier&) = delete;
  StreamCarrier& operator=(const StreamCarrier&) = delete;

  const PipedProgram& program() const { return program_; }
  std::string LastWords() {
    ReadErrors();
    const std::string line = LastLineOf(errors_);
    return line.empty() ? "" : absl::StrCat(" (", line, ")");
  }

 private:
  void ReadErrors() {
    std::array<char, kMostKept> piece;
    const ssize_t got = Uninterrupted([&] { return read(program_.stderr_fd(), piece.data(), piece.size()); });
    if (got > 0) errors_.append(piece.data(), static_cast<size_t>(got));
    if (errors_.size() > kMostKept) errors_.erase(0, errors_.size() - kMostKept);
    if (got == 0) loop_.SetEvents(program_.stderr_fd(), 0);
  }

  PipedProgram program_;
  FdLoop& loop_;
  std::string errors_;
};

}  // namespace

ContactEngine::ContactEngine(ContactOptions options, FdLoop& loop, const Clock& clock)
    : options_(std::move(options)), loop_(loop), clock_(clock) {}

absl::Status ContactEngine::Start(EngineEvents& events) {
  events_ = &events;
  if (!options_.muster.hash.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string program, PosixFileSystem().ReadFile(options_.muster_path));
  ASSIGN_OR_RETURN(options_.muster_needs, NeedsOfElf(program));
  options_.muster = MusterFileOf(program);
  return absl::OkStatus();
}

void ContactEngine::Connect(const std::string& host) {
  MUSTER_CHECK(events_ != nullptr);
  waiting_.push_back(host);
}

std::string ContactEngine::LastWords(const std::string& host) const {
  for (const auto& contact : contacts_)
    if (contact->host() == host && !contact->done()) return contact->last_words();
  const bool waits = std::find(waiting_.begin(), waiting_.end(), host) != waiting_.end();
  return waits ? absl::StrCat("it isn't dialled yet, as ", kAtOnce, " others are") : "";
}

absl::Time ContactEngine::deadline() const {
  if (!waiting_.empty() && contacts_.size() < kAtOnce) return absl::InfinitePast();
  absl::Time first = absl::InfiniteFuture();
  for (const auto& contact : contacts_)
    first = std::min(first, contact->done() ? absl::InfinitePast() : contact->deadline());
  return first;
}

void ContactEngine::OnTime() {
  for (const auto& contact : contacts_) contact->OnTime();
  std::erase_if(contacts_, [](const auto& contact) { return contact->done(); });
  while (!waiting_.empty() && contacts_.size() < kAtOnce) {
    const std::string host = std::move(waiting_.front());
    waiting_.pop_front();
    contacts_.push_back(std::make_unique<HostContact>(
        host, options_, loop_, clock_,
        [this, host](absl::StatusOr<ContactStream> stream) { OnContact(host, std::move(stream)); }));
    contacts_.back()->OnTime();
  }
}

void ContactEngine::OnContact(const std::string& host, absl::StatusOr<ContactStream> stream) {
  if (!stream.ok()) return events_->OnNoStream(host, stream.status());
  const auto carrier = std::make_shared<StreamCarrier>(std::move(stream->program), std::move(stream->banner), loop_);
  events_->OnStream(host, {.in_fd = carrier->program().stdout_fd(),
                           .out_fd = carrier->program().stdin_fd(),
                           .read_already = std::move(stream->read_already),
                           .carrier = carrier,
                           .last_words = [carrier] { return carrier->LastWords(); }});
}

}  // namespace muster
