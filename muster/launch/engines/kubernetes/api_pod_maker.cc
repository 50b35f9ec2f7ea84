#include "muster/launch/engines/kubernetes/api_pod_maker.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "muster/base/os/uninterrupted.h"
#include "muster/base/text/one_line.h"

namespace muster {

ApiPodMaker::ApiPodMaker(std::vector<std::string> environment, FdLoop& loop, std::vector<std::string> command)
    : environment_(std::move(environment)), command_(std::move(command)), loop_(loop) {}

ApiPodMaker::~ApiPodMaker() {
  while (!running_.empty()) Drop(running_.begin()->first);
}

void ApiPodMaker::Drop(const std::string& host) {
  const auto running = running_.find(host);
  if (running == running_.end()) return;
  loop_.Forget(running->second.end_fd());
  running_.erase(running);
}

void ApiPodMaker::Make(const std::string& host, int /*number*/, std::function<void(absl::Status)> done) {
  Drop(host);
  std::vector<std::string> words = command_;
  words.push_back(host);
  auto program = PipedProgram::Start(words, environment_);
  if (!program.ok()) return done(program.status());
  program->CloseStdin();
  const auto [running, is_new] = running_.emplace(host, *std::move(program));
  loop_.Watch(running->second.end_fd(), POLLIN, [this, host, done = std::move(done)](short) { OnEnd(host, done); });
}

void ApiPodMaker::OnEnd(const std::string& host, const std::function<void(absl::Status)>& done) {
  PipedProgram& program = running_.at(host);
  std::array<char, 4096> piece;
  const ssize_t got = Uninterrupted([&] { return read(program.stderr_fd(), piece.data(), piece.size()); });
  const std::string said = OneLine(std::string(piece.data(), got > 0 ? static_cast<size_t>(got) : 0), 1000);
  const bool made = program.Wait().ok();
  const std::function<void(absl::Status)> told = done;  // which goes with the watch
  Drop(host);
  told(made ? absl::OkStatus() : absl::UnavailableError(said));
}

}  // namespace muster
