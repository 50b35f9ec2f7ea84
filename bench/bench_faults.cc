// `bench faults`: what survival costs a parameter server when it is needed. How long training stands still when a ps is
// killed and started again on the memory that its launcher kept, and how long it stands still while a checkpoint is
// marked and written. Rows on stdout are JSON, the table is on stderr.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/median.h"
#include "bench/process.h"
#include "muster/base/check.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/optim/rule_options.h"
#include "muster/store/store_client.h"
#include "muster/transport/tcp/tcp_transport.h"

namespace muster::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

double MillisecondsSince(SteadyClock::time_point start) {
  return std::chrono::duration<double, std::milli>(SteadyClock::now() - start).count();
}

// One ps with memory that outlives it, and the chief that trains with it: a large variable that is never pushed, and a
// small one that is.
class Job {
 public:
  explicit Job(int64_t megabytes)
      : memory_fd_(memfd_create("bench-arena", 0)),
        address_(absl::StrCat("127.0.0.1:", FreePort())),
        large_(megabytes << 20),
        small_(4096),
        gradient_(4096) {
    const nlohmann::json config = {
        {"cluster", {{"ps", {address_}}, {"worker", {absl::StrCat("127.0.0.1:", FreePort())}}}},
        {"task", {{"type", "ps"}, {"index", 0}}}};
    environment_ = {{"TF_CONFIG", config.dump()}, {"MUSTER_ARENA_FD", absl::StrCat(memory_fd_)}};
    StartPs();
    const std::vector<VariableSpec> variables = {
        {.name = "large", .shape = {static_cast<int64_t>(large_.size() / sizeof(float))}},
        {.name = "small", .shape = {static_cast<int64_t>(small_.size() / sizeof(float))}}};
    MUSTER_CHECK(client_.Join(true).ok());
    client_.Bind({variables, *PlaceVariables(variables, 1, Placement::kRoundRobin, {}), Sgd(), {large_, small_}});
    MUSTER_CHECK(client_.Initialize(0, 0, nullptr).ok());
    MUSTER_CHECK(client_.AwaitReady(loop_.Now() + absl::Seconds(60)).ok());
  }
  ~Job() {
    kill(ps_, SIGKILL);
    WaitFor(ps_);
  }

  void Push() {
    const auto pushed = client_.PushPull([this](size_t i) { return i == 1 ? ByteSpan(gradient_) : ByteSpan(); },
                                         {.pull = PullWhat::kNothing});
    MUSTER_CHECK(pushed.ok());
  }
  // From the kill until a push is acknowledged again.
  double KillAndPush() {
    const auto start = SteadyClock::now();
    kill(ps_, SIGKILL);
    WaitFor(ps_);
    StartPs();
    Push();
    return MillisecondsSince(start);
  }
  // The longest that a push took while the whole model was saved, and how long that was.
  std::pair<double, double> LongestPushDuringSave(const std::string& directory, int save) {
    const std::string id = NewSaveId(absl::Now(), 1, save);
    MUSTER_CHECK(AnnounceSave(PosixFileSystem(), directory, id).ok());
    Saving saving(*this, directory, id);
    const auto start = SteadyClock::now();
    double longest = 0;
    do {
      const auto begin = SteadyClock::now();
      Push();
      longest = std::max(longest, MillisecondsSince(begin));
    } while (!saving.done());
    const double whole = MillisecondsSince(start);
    MUSTER_CHECK(RemoveLeftovers(PosixFileSystem(), directory).ok());
    return {longest, whole};
  }

 private:
  // Asks for the part on a connection of its own, as the chief's while a worker trains.
  class Saving {
   public:
    Saving(Job& job, const std::string& directory, const std::string& id)
        : channel_(job.transport_.Connect(job.address_)) {
      const SavePartRequest request{job.client_.HeartbeatStamp(0), job.client_.chief_epoch(), directory, id,
                                    PartFileName(0, 0, 1, id)};
      channel_->Call({.method = static_cast<uint16_t>(StoreMethod::kSavePart), .control = Encode(request)},
                     [this](const absl::StatusOr<Reply>& reply) {
                       MUSTER_CHECK(reply.ok());
                       done_ = true;
                     });
    }
    bool done() const { return done_; }

   private:
    const std::unique_ptr<Channel> channel_;
    bool done_ = false;
  };

  void StartPs() { ps_ = Start({SiblingProgram("muster"), "ps"}, environment_, "/dev/null"); }

  const int memory_fd_;
  const std::string address_;
  EnvironmentChanges environment_;
  pid_t ps_ = 0;
  std::vector<std::byte> large_, small_, gradient_;
  TcpEventLoop loop_;
  TcpTransport transport_{loop_, {}};
  StoreClient client_{transport_, {address_}, {.task = "worker:0", .where = "bench", .incarnation = 1}};
};

void Report(const char* what, int64_t megabytes, const std::vector<double>& samples, const char* of) {
  const double median = Median(samples);
  const double worst = *std::max_element(samples.begin(), samples.end());
  const nlohmann::json row = {{"bench", "faults"},   {"what", what},      {"megabytes", megabytes},
                              {"median_ms", median}, {"worst_ms", worst}, {"samples", samples.size()}};
  std::printf("%s\n", row.dump().c_str());
  std::fprintf(stderr, "%-12s %5ld MB: median %7.1f ms, worst %7.1f ms of %zu %s\n", what, static_cast<long>(megabytes),
               median, worst, samples.size(), of);
}

int Main(int argc, char** argv) {
  int kills = 20;
  int saves = 3;
  int64_t megabytes = 1000;
  CLI::App app("How long training stands still for a killed ps, and for a checkpoint.", "bench_faults");
  app.add_option("--kills", kills, "of the ps")->capture_default_str();
  app.add_option("--saves", saves, "of the whole model")->capture_default_str();
  app.add_option("--megabytes", megabytes, "of the model")->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  Job job(megabytes);
  std::vector<double> recoveries, pushes, pauses, whole;
  for (int i = 0; i < kills; ++i) recoveries.push_back(job.KillAndPush());
  Report("recovery", megabytes, recoveries, "kills");
  for (int i = 0; i < 1000; ++i) {
    const auto begin = SteadyClock::now();
    job.Push();
    pushes.push_back(MillisecondsSince(begin));
  }
  Report("push", megabytes, pushes, "small pushes");
  const std::string directory = std::filesystem::temp_directory_path() / absl::StrCat("bench_faults.", getpid());
  MUSTER_CHECK(PosixFileSystem().CreateDirectory(directory).ok());
  for (int i = 0; i < saves; ++i) {
    const auto [longest, save] = job.LongestPushDuringSave(directory, i);
    pauses.push_back(longest);
    whole.push_back(save);
  }
  std::filesystem::remove_all(directory);
  Report("mark", megabytes, pauses, "saves: the longest push during one");
  Report("save", megabytes, whole, "saves, disk included");
  return 0;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) { return muster::bench::Main(argc, argv); }
