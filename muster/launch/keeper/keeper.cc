#include "muster/launch/keeper/keeper.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "muster/base/os/memory_file.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/launch/keeper/keeper_messages.h"
#include "muster/launch/keeper/keeper_process.h"
#include "muster/transport/messages/codec.h"

namespace muster {

absl::StatusOr<std::unique_ptr<Keeper>> Keeper::Fork(KeeperOptions options) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return absl::ErrnoToStatus(errno, "cannot make the guard's socket");
  Socket own(ends[0]), its(ends[1]);
  const std::string agent_id = options.agent_id;
  const pid_t agent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    own.Close();
    KeeperProcess(std::move(options), std::move(its), agent).Run();
  }
  if (pid < 0) return absl::ErrnoToStatus(errno, "cannot start the guard process");
  its.Close();
  std::unique_ptr<Keeper> keeper(new Keeper(std::move(own), pid, agent_id));
  keeper->is_own_child_ = true;
  if (!keeper->reader_->Await(keeper->fd()).has_value())
    return absl::UnavailableError("the guard process has ended at once");
  return keeper;
}

Keeper::Keeper(Socket socket, pid_t pid, std::string agent_id)
    : socket_(std::move(socket)),
      pid_(pid),
      agent_id_(std::move(agent_id)),
      reader_(std::make_unique<KeeperReader>()) {}

Keeper::~Keeper() {
  Goodbye();
  while (!kept_.empty()) CloseKept(std::string(kept_.begin()->first));
}

void Keeper::CloseKept(const std::string& name) {
  const auto kept = kept_.find(name);
  if (kept == kept_.end()) return;
  for (const int fd : kept->second.descriptors) close(fd);
  kept_.erase(kept);
}

// Looks whether its end of the socket is closed, since the caller is about to signal a task's group.
bool Keeper::gone() const {
  char nothing;
  return gone_ || !socket_.valid() || recv(socket_.fd(), &nothing, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void Keeper::Send(uint32_t kind, const std::string& body, const std::vector<int>& descriptors) {
  gone_ |= !SendToKeeper(socket_.fd(), static_cast<KeeperKind>(kind), body, descriptors).ok();
}

void Keeper::EndAt(absl::Time time) {
  ends_at_ = time;
  Send(static_cast<uint32_t>(KeeperKind::kEndAt), Encode(EndAtMessage{.boot_nanoseconds = absl::ToUnixNanos(time)}));
}

void Keeper::SetEnding() { Send(static_cast<uint32_t>(KeeperKind::kEnding), ""); }

absl::StatusOr<Child> Keeper::StartTask(const NewTask& task, ChildSpec spec) {
  if (task.has_memory && !kept_.contains(MemoryName(task.task))) {
    // If this fails, the ps has memory of its own, which is lost when it is killed.
    if (const int fd = CreateMemoryFile(kArenaFileName); fd >= 0) {
      const KeptThing memory = {.value = "", .descriptors = {fd}};
      Keep(MemoryName(task.task), memory);
      kept_[MemoryName(task.task)] = memory;
    }
  }
  const std::vector<int> group = spec.cgroup_fd >= 0 ? std::vector<int>{spec.cgroup_fd} : std::vector<int>{};
  Send(static_cast<uint32_t>(KeeperKind::kStart), Encode(StartMessage::Of(task, spec)), group);
  const std::optional<KeeperMessage> answer = gone_ ? std::nullopt : reader_->Await(fd());
  StartedMessage started;
  gone_ |= !answer.has_value();
  if (gone_ || !Decode(answer->body, started).ok())
    return absl::UnavailableError("the process that keeps the tasks is gone");
  if (started.pid == 0) return absl::Status(static_cast<absl::StatusCode>(started.code), started.why);
  if (!answer->whole || answer->descriptors.size() < 3) {
    for (const int fd : answer->descriptors) close(fd);
    Forget(task.label);  // which kills it
    return absl::ResourceExhaustedError("too many open files to start a program; raise `ulimit -n`");
  }
  return Child{.pid = static_cast<pid_t>(started.pid),
               .pid_fd = answer->descriptors[0],
               .stdin_fd = answer->descriptors.size() > 3 ? answer->descriptors[3] : -1,
               .stdout_fd = answer->descriptors[1],
               .stderr_fd = answer->descriptors[2]};
}

// Tasks whose keeper has died are killed by the kernel.
ExitStatus Keeper::Await(const std::string& label, const Child&) {
  Send(static_cast<uint32_t>(KeeperKind::kAwait), Encode(LabelMessage{.label = label}));
  const std::optional<KeeperMessage> answer = gone_ ? std::nullopt : reader_->Await(fd());
  EndedMessage ended{.signal = SIGKILL};
  gone_ |= !answer.has_value();
  if (answer.has_value() && !Decode(answer->body, ended).ok()) ended = {.signal = SIGKILL};
  return {.code = static_cast<int>(ended.code), .signal = static_cast<int>(ended.signal)};
}

void Keeper::Forget(const std::string& label) {
  Send(static_cast<uint32_t>(KeeperKind::kForget), Encode(LabelMessage{.label = label}));
}

// What an earlier life has kept under this name is held no more.
void Keeper::Keep(const std::string& name, const KeptThing& thing) {
  Send(static_cast<uint32_t>(KeeperKind::kKeep),
       Encode(KeepMessage{
           .names = {name}, .values = {thing.value}, .descriptors = {static_cast<uint32_t>(thing.descriptors.size())}}),
       thing.descriptors);
  CloseKept(name);
}

void Keeper::KeepValues(const std::vector<std::pair<std::string, std::optional<std::string>>>& values) {
  KeepMessage message;
  for (const auto& [name, value] : values) {
    message.names.push_back(name);
    message.values.push_back(value.value_or(""));
    message.descriptors.push_back(0);
  }
  Send(static_cast<uint32_t>(KeeperKind::kKeep), Encode(message));
}

std::vector<AdoptedTask> Keeper::Adopt() { return std::exchange(adopted_, {}); }

void Keeper::Goodbye() {
  if (!socket_.valid()) return;
  Send(static_cast<uint32_t>(KeeperKind::kGoodbye), "");
  char nothing;
  while (Uninterrupted([&] { return recv(socket_.fd(), &nothing, 1, 0); }) > 0) {
  }
  socket_.Close();
  if (is_own_child_) Uninterrupted([&] { return waitpid(pid_, nullptr, 0); });
}

}  // namespace muster
