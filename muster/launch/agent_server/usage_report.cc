#include "muster/launch/agent_server/usage_report.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>

#include "absl/status/statusor.h"
#include "muster/launch/watch/process_table.h"

namespace muster {
namespace {

constexpr char kGpuProgram[] = "nvidia-smi";

}  // namespace

UsageReport::~UsageReport() { EndQuery(); }

UsageEntry UsageReport::Read(const std::vector<RunningLaunch>& launches) {
  if (std::any_of(launches.begin(), launches.end(), [](const RunningLaunch& one) { return !one.devices.empty(); }))
    AskForGpus();
  std::vector<pid_t> leaders;
  for (const RunningLaunch& one : launches) leaders.push_back(one.pid);
  const std::map<pid_t, ProcessSums> sums = SumsByLeader(ReadProcesses("/proc"), leaders);
  UsageEntry usage;
  for (const RunningLaunch& one : launches) {
    const auto found = sums.find(one.pid);
    if (found == sums.end()) continue;
    LaunchUsage& of_launch = usage.launches.emplace_back();
    of_launch = {.launch = one.launch,
                 .cpu_micros = static_cast<int64_t>(found->second.cpu_seconds * 1e6),
                 .resident_bytes = found->second.resident_bytes};
    of_launch.SetGpus(SumGpus(one.devices, gpus_));
  }
  return usage;
}

void UsageReport::AskForGpus() {
  const absl::Time now = clock_.Now();
  if (query_.has_value() && !killed_ && now >= asked_ + kGpusWithin) KillQuery();
  if (query_.has_value() || now < asked_ + kGpusEvery) return;
  asked_ = now;
  absl::StatusOr<PipedProgram> query = PipedProgram::Start(GpuQuery(kGpuProgram), environment_);
  if (!query.ok()) return;  // a host without GPUs; it may get the driver while the agent lives
  query_.emplace(*std::move(query));
  query_->CloseStdin();
  answer_.clear();
  loop_.Watch(query_->stdout_fd(), POLLIN, [this](short) { OnAnswer(); });
}

void UsageReport::OnAnswer() {
  std::array<char, 4096> piece;
  const ssize_t got = read(query_->stdout_fd(), piece.data(), piece.size());
  if (got > 0) answer_.append(piece.data(), static_cast<size_t>(got));
  if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return;
  gpus_ = ParseGpuUsage(answer_);
  EndQuery();
}

// A program that waits for a broken driver ends when the driver lets it, which nobody here may wait for.
void UsageReport::KillQuery() {
  gpus_.clear();
  killed_ = true;
  loop_.Forget(query_->stdout_fd());
  query_->Kill();
  loop_.Watch(query_->end_fd(), POLLIN, [this](short) { EndQuery(); });
}

void UsageReport::EndQuery() {
  if (!query_.has_value()) return;
  loop_.Forget(query_->stdout_fd());
  loop_.Forget(query_->end_fd());
  query_.reset();
  killed_ = false;
}

}  // namespace muster
