#include "muster/launch/engines/contact/host_contact.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/base/text/last_line.h"

namespace muster {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(200);
constexpr absl::Duration kLongestPause = absl::Seconds(3);
constexpr size_t kPiece = 64 << 10;
constexpr size_t kMostErrors = 16 << 10;  // of what the program writes; the beginning is dropped

// Appends what is there now; returns false once the stream has ended.
bool ReadAvailable(int fd, std::string& into) {
  std::array<char, kPiece> piece;
  for (;;) {
    const ssize_t got = Uninterrupted([&] { return read(fd, piece.data(), piece.size()); });
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN;
    into.append(piece.data(), static_cast<size_t>(got));
  }
}

}  // namespace

HostContact::HostContact(std::string host, const ContactOptions& options, FdLoop& loop, const Clock& clock, Done done)
    : host_(std::move(host)),
      options_(options),
      loop_(loop),
      clock_(clock),
      done_(std::move(done)),
      give_up_(clock.Now() + options.patience),
      pause_(kFirstPause, kLongestPause),
      redial_at_(clock.Now()) {}

HostContact::~HostContact() { Forget(); }

absl::Time HostContact::deadline() const {
  if (done()) return absl::InfiniteFuture();
  return std::min(redial_at_, give_up_);
}

void HostContact::OnTime() {
  if (done()) return;
  if (clock_.Now() >= give_up_) {
    Finish(absl::DeadlineExceededError(
        absl::StrCat(host_, " has no agent after ", absl::FormatDuration(options_.patience), ItsLastWords())));
  } else if (clock_.Now() >= redial_at_) {
    redial_at_ = absl::InfiniteFuture();
    Dial();
  }
}

void HostContact::Dial() {
  contact_ = FirstContact();
  errors_.clear();
  absl::StatusOr<PipedProgram> program =
      PipedProgram::Start(options_.way->WordsFor(host_), options_.environment, options_.folder);
  if (!program.ok()) return Finish(program.status());
  program_.emplace(*std::move(program));
  outgoing_ = FirstContactLine(options_.muster, options_.job, options_.grace);
  loop_.Watch(program_->stdin_fd(), POLLOUT, [this](short) { Write(); });
  loop_.Watch(program_->stdout_fd(), POLLIN, [this](short) { OnOutput(); });
  loop_.Watch(program_->stderr_fd(), POLLIN, [this](short) { OnErrors(); });
  loop_.Watch(program_->end_fd(), POLLIN, [this](short) { OnEnd(); });
}

void HostContact::OnOutput() {
  std::string bytes;
  if (!ReadAvailable(program_->stdout_fd(), bytes)) loop_.SetEvents(program_->stdout_fd(), 0);
  const FirstContact::State before = contact_.state();
  const size_t used = contact_.Take(bytes);
  if (contact_.state() != before) OnAnswer(std::string_view(bytes).substr(used));
}

void HostContact::OnAnswer(std::string_view rest) {
  switch (contact_.state()) {
    case FirstContact::State::kStarted: {
      Forget();
      ContactStream stream{
          .program = *std::move(program_), .read_already = std::string(rest), .banner = contact_.banner()};
      program_.reset();
      return Finish(std::move(stream));
    }
    case FirstContact::State::kSend: {
      if (const absl::Status may = CheckRunsOn(host_, contact_.system(), options_.muster_needs); !may.ok())
        return Finish(may);
      return BeginSending();
    }
    case FirstContact::State::kNoMuster:
      return Finish(absl::UnavailableError(
          absl::StrCat(host_, " prints without end instead of starting muster", ItsLastWords())));
    case FirstContact::State::kFailed:  // stderr says why, and the end follows
    case FirstContact::State::kWaiting:
      return;
  }
}

void HostContact::BeginSending() {
  file_ = open(options_.muster_path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file_ < 0)
    return Finish(
        absl::ErrnoToStatus(errno, absl::StrCat("cannot read '", options_.muster_path, "' to copy it to ", host_)));
  loop_.SetEvents(program_->stdin_fd(), POLLOUT);
}

void HostContact::Write() {
  while (true) {
    if (outgoing_.empty() && file_ >= 0) {
      outgoing_.resize(kPiece);
      const ssize_t got = Uninterrupted([&] { return read(file_, outgoing_.data(), outgoing_.size()); });
      outgoing_.resize(got > 0 ? static_cast<size_t>(got) : 0);
      if (got <= 0) close(std::exchange(file_, -1));
    }
    if (outgoing_.empty()) return loop_.SetEvents(program_->stdin_fd(), 0);
    const ssize_t put = Uninterrupted([&] { return write(program_->stdin_fd(), outgoing_.data(), outgoing_.size()); });
    // A broken pipe is told by the program's end.
    if (put < 0) return errno == EAGAIN ? void() : loop_.SetEvents(program_->stdin_fd(), 0);
    outgoing_.erase(0, static_cast<size_t>(put));
    // The host takes the file, which may be long; what is written before may only be in the program's own pipe.
    if (contact_.state() == FirstContact::State::kSend) give_up_ = std::max(give_up_, clock_.Now() + options_.patience);
  }
}

void HostContact::OnErrors() {
  if (!ReadAvailable(program_->stderr_fd(), errors_)) loop_.SetEvents(program_->stderr_fd(), 0);
  if (errors_.size() > kMostErrors) errors_.erase(0, errors_.size() - kMostErrors);
}

void HostContact::OnEnd() {
  OnErrors();
  OnOutput();
  if (done()) return;
  const ExitStatus status = program_->Wait();
  const WayEnd end = options_.way->WhyEnded(host_, status, errors_);
  if (end.again && clock_.Now() < give_up_) return Redial();
  if (contact_.state() == FirstContact::State::kFailed)
    return Finish(absl::UnavailableError(absl::StrCat(host_, " can't keep a copy of muster", ItsLastWords())));
  if (!end.why.empty()) return Finish(absl::UnavailableError(end.why));
  Finish(absl::UnavailableError(
      absl::StrCat(host_, ": its shell ", status.ToString(), " before an agent spoke", ItsLastWords())));
}

void HostContact::Redial() {
  dropped_ = LastLineOf(errors_);
  Forget();
  program_.reset();
  redial_at_ = clock_.Now() + pause_.Next();
}

std::string HostContact::last_words() const {
  if (contact_.state() == FirstContact::State::kSend) return "muster is being copied there";
  const std::string line = LastLineOf(errors_);
  if (!line.empty()) return line;
  return dropped_.empty() ? absl::StrCat(options_.way->name(), " hasn't got through yet") : dropped_;
}

// Returns " (LINE)": the last that was written to stderr, or else to stdout.
std::string HostContact::ItsLastWords() const {
  const std::string line = LastLineOf(errors_.empty() ? contact_.banner() : errors_);
  return line.empty() ? "" : absl::StrCat(" (", line, ")");
}

void HostContact::Finish(absl::StatusOr<ContactStream> stream) {
  Forget();
  program_.reset();
  std::exchange(done_, nullptr)(std::move(stream));
}

void HostContact::Forget() {
  if (file_ >= 0) close(std::exchange(file_, -1));
  if (!program_.has_value()) return;
  for (const int fd : {program_->stdin_fd(), program_->stdout_fd(), program_->stderr_fd(), program_->end_fd()})
    loop_.Forget(fd);
}

}  // namespace muster
