#include "muster/launch/watch/gpu_usage.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "muster/base/clock.h"

namespace muster {
namespace {

constexpr char kGpuQuery[] = "--query-gpu=index,uuid,utilization.gpu,memory.used,memory.total";
constexpr char kGpuFormat[] = "--format=csv,noheader,nounits";
constexpr size_t kGpuFields = 5;

// Parses nvidia-smi's unit of memory.
std::optional<int64_t> MebibytesOf(absl::string_view text) {
  int64_t mebibytes = 0;
  if (!absl::SimpleAtoi(text, &mebibytes) || mebibytes < 0) return std::nullopt;
  return mebibytes << 20;
}

// Reads `fd` to its end; nullopt if that doesn't come in time.
std::optional<std::string> ReadGpuAnswer(int fd, absl::Time deadline) {
  std::string text;
  std::array<char, 4096> piece;
  for (;;) {
    pollfd readable = {.fd = fd, .events = POLLIN, .revents = 0};
    const int64_t left = absl::ToInt64Milliseconds(deadline - RealClock().Now());
    if (left <= 0 || poll(&readable, 1, static_cast<int>(left)) <= 0) return std::nullopt;
    const ssize_t bytes = read(fd, piece.data(), piece.size());
    if (bytes < 0) return std::nullopt;
    if (bytes == 0) return text;
    text.append(piece.data(), static_cast<size_t>(bytes));
  }
}

}  // namespace

std::vector<GpuUsage> ParseGpuUsage(std::string_view text) {
  std::vector<GpuUsage> gpus;
  for (const absl::string_view line : absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    std::vector<absl::string_view> fields = absl::StrSplit(line, ',');
    for (absl::string_view& field : fields) field = absl::StripAsciiWhitespace(field);
    GpuUsage gpu;
    if (fields.size() != kGpuFields || !absl::SimpleAtoi(fields[0], &gpu.index)) continue;
    gpu.uuid = std::string(fields[1]);
    double percent = 0;
    if (absl::SimpleAtod(fields[2], &percent)) gpu.percent = percent;
    gpu.mem_bytes = MebibytesOf(fields[3]);
    gpu.mem_total = MebibytesOf(fields[4]);
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

std::vector<std::string> GpuQuery(const std::string& program) { return {program, kGpuQuery, kGpuFormat}; }

std::vector<GpuUsage> ReadGpuUsage(const std::string& program, absl::Duration within) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<std::string> words = GpuQuery(program);
  const std::array<char*, 4> arguments = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  pid_t pid = 0;
  const int failed = posix_spawnp(&pid, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::optional<std::string> text;
  if (failed == 0) {
    text = ReadGpuAnswer(ends[0], RealClock().Now() + within);
    if (!text.has_value()) kill(pid, SIGKILL);
    int status = 0;
    if (waitpid(pid, &status, 0) != pid || status != 0) text = std::nullopt;
  }
  close(ends[0]);
  return text.has_value() ? ParseGpuUsage(*text) : std::vector<GpuUsage>();
}

GpusInUse SumGpus(const std::string& visible, const std::vector<GpuUsage>& gpus) {
  GpusInUse sums;
  double percent = 0;
  int with_percent = 0;
  for (const absl::string_view name : absl::StrSplit(visible, ',', absl::SkipWhitespace())) {
    const GpuUsage* gpu = FindGpu(gpus, std::string_view(name.data(), name.size()));
    if (gpu == nullptr) continue;
    ++sums.count;
    if (gpu->percent.has_value()) {
      percent += *gpu->percent;
      ++with_percent;
    }
    if (gpu->mem_bytes.has_value()) sums.mem_bytes = sums.mem_bytes.value_or(0) + *gpu->mem_bytes;
    if (gpu->mem_total.has_value()) sums.mem_total = sums.mem_total.value_or(0) + *gpu->mem_total;
  }
  if (with_percent > 0) sums.percent = percent / with_percent;
  return sums;
}

const GpuUsage* FindGpu(const std::vector<GpuUsage>& gpus, std::string_view name) {
  int index = 0;
  const bool is_number = absl::SimpleAtoi(absl::string_view(name.data(), name.size()), &index);
  for (const GpuUsage& gpu : gpus)
    if (is_number ? gpu.index == index : !name.empty() && std::string_view(gpu.uuid).starts_with(name)) return &gpu;
  return nullptr;
}

}  // namespace muster
