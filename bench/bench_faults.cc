// `bench faults`: what a failure costs: how long training stops when a ps is killed and started again on the memory
// that its launcher kept, and how long it stops while a checkpoint is cut and written. Rows on stdout are JSON, the
// table is on stderr.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/support/process.h"
#include "bench/support/rounds.h"
#include "muster/base/check.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/optim/rule_options.h"
#include "muster/store/client/checkpoint_calls.h"
#include "muster/store/client/cut_leader.h"
#include "muster/store/client/store_client.h"
#include "muster/transport/tcp/tcp_transport.h"

namespace muster::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

double MillisecondsSince(SteadyClock::time_point start) { return 1e3 * SecondsSince(start); }

// A model with a large variable that is never pushed and a small one that is.
struct Model {
  explicit Model(int64_t megabytes) : large(megabytes << 20), small(4096), gradient(4096) {
    const std::vector<VariableSpec> variables = {
        {.name = "large", .shape = {static_cast<int64_t>(large.size() / sizeof(float))}},
        {.name = "small", .shape = {static_cast<int64_t>(small.size() / sizeof(float))}}};
    binding = {variables, *PlaceVariables(variables, 1, Placement::kRoundRobin, {}), Sgd(), {large, small}};
  }

  std::vector<std::byte> large, small, gradient;
  ModelBinding binding;
};

// A process of the job, as the store sees it.
class Trainer {
 public:
  // `incarnation` identifies its process; each life of a task has a new one.
  Trainer(const std::string& address, const std::string& task, uint64_t incarnation, const Model& model,
          ApplyChoice apply)
      : gradient_(model.gradient),
        client_(transport_, {address}, {.task = task, .where = "bench", .incarnation = incarnation, .apply = apply}) {
    const bool chief = task == "worker:0";
    MUSTER_CHECK(client_.Join(chief).ok());
    client_.Bind(model.binding);
    if (chief) MUSTER_CHECK(client_.Initialize(0, 0, nullptr).ok());
    MUSTER_CHECK(client_.AwaitReady(loop_.Now() + absl::Seconds(60)).ok());
  }

  // Returns the milliseconds until the push was acknowledged.
  double Push() {
    const auto start = SteadyClock::now();
    const auto pushed =
        client_.PushPull([this](size_t i) { return i == 1 ? gradient_ : ByteSpan(); }, {.pull = PullWhat::kNothing});
    MUSTER_CHECK(pushed.ok());
    return MillisecondsSince(start);
  }
  StoreClient& client() { return client_; }

 private:
  const ByteSpan gradient_;
  TcpEventLoop loop_;
  TcpTransport transport_{loop_, {}};
  StoreClient client_;
};

// A worker that pushes in its own thread, one push after another.
class PushingThread {
 public:
  PushingThread(const std::string& address, uint64_t incarnation, const Model& model, ApplyChoice apply)
      : thread_([this, address, incarnation, &model, apply] {
          Trainer worker(address, "worker:1", incarnation, model, apply);
          started_ = true;
          while (!stopped_) {
            const double took = worker.Push();
            if (took > longest_) longest_ = took;
          }
          MUSTER_CHECK(worker.client().Done().ok());
        }) {
    while (!started_) std::this_thread::yield();
  }
  ~PushingThread() {
    stopped_ = true;
    thread_.join();
  }
  // Returns the longest push since the last call, in milliseconds.
  double TakeLongest() { return longest_.exchange(0); }

 private:
  std::atomic<bool> started_{false};
  std::atomic<bool> stopped_{false};
  std::atomic<double> longest_{0};
  std::thread thread_;
};

// One ps with memory that outlives it, and the chief.
class Job {
 public:
  explicit Job(int64_t megabytes)
      : memory_fd_(memfd_create("bench-arena", 0)),
        address_(absl::StrCat("127.0.0.1:", FreePort())),
        model_(megabytes) {
    nlohmann::json workers;
    for (int i = 0; i < 2; ++i) workers.push_back(absl::StrCat("127.0.0.1:", FreePort()));
    const nlohmann::json config = {{"cluster", {{"ps", {address_}}, {"worker", workers}}},
                                   {"task", {{"type", "ps"}, {"index", 0}}}};
    environment_ = {{"TF_CONFIG", config.dump()}, {"MUSTER_ARENA_FD", absl::StrCat(memory_fd_)}};
    StartPs();
    chief_ = std::make_unique<Trainer>(address_, "worker:0", 1, model_, ApplyChoice::kServer);
  }
  ~Job() {
    kill(ps_, SIGKILL);
    WaitFor(ps_);
  }

  const std::string& address() const { return address_; }
  const Model& model() const { return model_; }
  double Push() { return chief_->Push(); }
  // Measures from the kill until a push is acknowledged again.
  double KillAndPush() {
    const auto start = SteadyClock::now();
    kill(ps_, SIGKILL);
    WaitFor(ps_);
    StartPs();
    Push();
    return MillisecondsSince(start);
  }
  // Cuts and saves like a chief; returns how long that took.
  double Save(const std::string& directory, int save) {
    const auto start = SteadyClock::now();
    const std::string id = NewSaveId(absl::Now(), 1, save);
    MUSTER_CHECK(AnnounceSave(PosixFileSystem(), directory, id).ok());
    const auto cut = CutCheckpoint(chief_->client());
    MUSTER_CHECK(cut.ok());
    MUSTER_CHECK(SavePart(chief_->client(), 0, directory, id, PartFileName(cut->global_step, 0, 1), cut->hold).ok());
    const double took = MillisecondsSince(start);
    MUSTER_CHECK(RemoveLeftovers(PosixFileSystem(), directory).ok());
    return took;
  }

 private:
  void StartPs() { ps_ = Start({SiblingProgram("muster"), "ps"}, environment_, "/dev/null"); }

  const int memory_fd_;
  const std::string address_;
  const Model model_;
  EnvironmentChanges environment_;
  pid_t ps_ = 0;
  std::unique_ptr<Trainer> chief_;
};

void Report(const std::string& what, int64_t megabytes, const std::vector<double>& samples, const char* of) {
  const auto [median, least, worst] = SpreadOf(samples);
  const nlohmann::json row = {{"bench", "faults"},   {"what", what},      {"megabytes", megabytes},
                              {"median_ms", median}, {"worst_ms", worst}, {"samples", samples.size()}};
  std::printf("%s\n", row.dump().c_str());
  std::fprintf(stderr, "%-13s %5ld MB: median %7.1f ms, worst %7.1f ms of %zu %s\n", what.c_str(),
               static_cast<long>(megabytes), median, worst, samples.size(), of);
}

int Main(int argc, char** argv) {
  int kills = 20;
  int saves = 5;
  int64_t megabytes = 1000;
  CLI::App app("How long training stands still for a killed ps, and for a checkpoint.", "bench_faults");
  app.add_option("--kills", kills, "how often the ps is killed")->capture_default_str();
  app.add_option("--saves", saves, "how often the whole model is saved")->capture_default_str();
  app.add_option("--megabytes", megabytes, "size of the model")->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  Job job(megabytes);
  std::vector<double> recoveries, pushes;
  for (int i = 0; i < kills; ++i) recoveries.push_back(job.KillAndPush());
  Report("recovery", megabytes, recoveries, "kills");
  for (int i = 0; i < 1000; ++i) pushes.push_back(job.Push());
  Report("push", megabytes, pushes, "small pushes");
  const std::string directory = std::filesystem::temp_directory_path() / absl::StrCat("bench_faults.", getpid());
  MUSTER_CHECK(PosixFileSystem().CreateDirectory(directory).ok());
  int save = 0;
  uint64_t incarnation = 0;
  for (const ApplyChoice apply : {ApplyChoice::kServer, ApplyChoice::kDirect}) {
    PushingThread worker(job.address(), ++incarnation, job.model(), apply);
    std::vector<double> pauses, whole;
    for (int i = 0; i < saves; ++i) {
      worker.TakeLongest();
      whole.push_back(job.Save(directory, ++save));
      pauses.push_back(worker.TakeLongest());
    }
    const std::string who = apply == ApplyChoice::kDirect ? ", direct" : "";
    Report("pause" + who, megabytes, pauses, "saves: the longest push of a worker during one");
    Report("save" + who, megabytes, whole, "saves, disk included");
  }
  std::filesystem::remove_all(directory);
  return 0;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) { return muster::bench::Main(argc, argv); }
