// `bench sparse`: rows per second that workers look up in, and update by SGD, a large table on a parameter server:
// through the ps, and by direct apply in its memory. Compared with TensorFlow's (tf.compat.v1, the same table, batch
// and number of workers), in turns in one run. Rows on stdout are JSON, the table is on stderr. If TensorFlow is
// missing it is installed where `bench peers` has it; if that fails, its part is skipped with a message.
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/support/process.h"
#include "bench/support/rounds.h"
#include "muster/base/check.h"
#include "muster/base/testing/built_at.h"
#include "muster/optim/rule_options.h"
#include "muster/store/client/row_client.h"
#include "muster/transport/tcp/tcp_transport.h"

namespace muster::bench {
namespace {

constexpr int kWarmUpSteps = 100;
// Batches are drawn in advance and used in turns: together they have more rows than fit any cache.
constexpr int kBatches = 64;

struct Options {
  int64_t rows = 1'000'000;
  int64_t width = 64;
  int64_t batch = 4096;
  double seconds = 2;
  int rounds = 5;
  // For a process that this program starts itself.
  std::string role;
  std::string out;
  std::string ps;
  std::string apply;  // "server" or "direct"
  int task = 0;
  int workers = 1;
};

// What is measured, in this order.
constexpr std::array<const char*, 2> kModes = {"look_up", "update"};

// What reads and updates the table: muster's two ways, and TensorFlow.
constexpr std::array<const char*, 2> kApplies = {"server", "direct"};
constexpr const char* kTensorFlow = "tensorflow";

using Rates = std::array<double, kModes.size()>;

// A worker: a client of the store like a trainer's.
class Worker {
 public:
  explicit Worker(const Options& options)
      : options_(options),
        client_(transport_, {options.ps},
                {.task = absl::StrCat("worker:", options.task),
                 .where = "here",
                 .incarnation = 1,
                 .apply = options.apply == "direct" ? ApplyChoice::kDirect : ApplyChoice::kServer}),
        values_(options.batch * options.width),
        gradients_(values_.size()) {
    std::mt19937_64 random(1 + options.task);
    for (auto& batch : batches_) {
      batch.resize(options.batch);
      for (int64_t& row : batch) row = static_cast<int64_t>(random() % options.rows);
    }
    const std::vector<VariableSpec> variables = {{.name = "table",
                                                  .shape = {options.rows, options.width},
                                                  .kind = VariableKind::kRows,
                                                  .table = {.initial = RowInitializer::Uniform(-1, 1, 7)}}};
    Must(client_.Join(options.task == 0));
    client_.Bind(
        {variables, *PlaceVariables(variables, 1, Placement::kRoundRobin, {}), Sgd({.learning_rate = 0.1}), {{}}});
    if (options.task == 0) Must(client_.Initialize(0, 0, nullptr));
    Must(client_.AwaitReady(loop_.Now() + absl::Seconds(60)).status());
  }

  Rates Measure() {
    Rates rates;
    for (size_t mode = 0; mode < kModes.size(); ++mode) {
      for (int step = 0; step < kWarmUpSteps; ++step) Step(mode);
      Must(client_.Barrier(kModes[mode], static_cast<uint32_t>(options_.workers)));
      const auto start = std::chrono::steady_clock::now();
      int64_t steps = 0;
      for (; SecondsSince(start) < options_.seconds; ++steps) Step(mode);
      rates[mode] = static_cast<double>(steps * options_.batch) / SecondsSince(start);
    }
    Must(client_.Barrier("done", static_cast<uint32_t>(options_.workers)));
    Must(client_.Done());
    return rates;
  }

 private:
  static void Must(const absl::Status& status) {
    if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
    MUSTER_CHECK(status.ok());
  }

  void Step(size_t mode) {
    const std::vector<int64_t>& batch = batches_[next_++ % kBatches];
    Must(rows_.Gather("table", {batch, DType::kFloat32, AsMutableBytes(values_.data(), values_.size())}));
    if (mode == 0) return;
    // The gradient of half the mean square of a row.
    const float scale = 1 / static_cast<float>(options_.batch);
    for (size_t i = 0; i < values_.size(); ++i) gradients_[i] = values_[i] * scale;
    Must(rows_.Push("table", {batch, DType::kFloat32, AsBytes(gradients_.data(), gradients_.size())}).status());
  }

  const Options options_;
  TcpEventLoop loop_;
  TcpTransport transport_{loop_, {}};
  StoreClient client_;
  RowClient rows_{client_};
  std::array<std::vector<int64_t>, kBatches> batches_;
  size_t next_ = 0;
  std::vector<float> values_, gradients_;
};

int Work(const Options& options) {
  const Rates rates = Worker(options).Measure();
  std::ofstream(options.out) << absl::StrJoin(rates, " ") << "\n";
  return 0;
}

// Returns the sum of what the workers wrote; zeros if one failed.
Rates SumOf(const std::vector<pid_t>& workers, const std::vector<std::string>& outs) {
  Rates sum = {};
  bool good = true;
  for (size_t i = 0; i < workers.size(); ++i) {
    if (WaitFor(workers[i]) != 0) {
      ShowEnd(outs[i] + ".log");
      good = false;
    }
    std::ifstream file(outs[i]);
    double rate = 0;
    for (size_t mode = 0; mode < sum.size() && file >> rate; ++mode) sum[mode] += rate;
  }
  return good ? sum : Rates{};
}

Rates MeasureMuster(const Options& options, const std::string& folder, const std::string& apply, int workers) {
  const std::string ps_address = absl::StrCat("127.0.0.1:", FreePort());
  nlohmann::json config = {{"cluster", {{"ps", {ps_address}}}}, {"task", {{"type", "ps"}, {"index", 0}}}};
  for (int i = 0; i < workers; ++i) config["cluster"]["worker"].push_back(absl::StrCat("127.0.0.1:", FreePort()));
  const pid_t ps = Start({SiblingProgram("muster"), "ps"}, {{"TF_CONFIG", config.dump()}}, folder + "/ps.log");
  std::vector<pid_t> children;
  std::vector<std::string> outs;
  for (int i = 0; i < workers; ++i) {
    outs.push_back(absl::StrCat(folder, "/muster", i));
    children.push_back(StartSelf({"--role",    "worker",
                                  "--ps",      ps_address,
                                  "--task",    absl::StrCat(i),
                                  "--workers", absl::StrCat(workers),
                                  "--apply",   apply,
                                  "--rows",    absl::StrCat(options.rows),
                                  "--width",   absl::StrCat(options.width),
                                  "--batch",   absl::StrCat(options.batch),
                                  "--seconds", absl::StrCat(options.seconds),
                                  "--out",     outs.back()},
                                 {}, outs.back() + ".log"));
  }
  const Rates rates = SumOf(children, outs);
  if (rates[0] == 0) kill(ps, SIGTERM);  // otherwise it would wait for workers that left without a message
  WaitFor(ps);
  return rates;
}

Rates MeasureTensorFlow(const Options& options, const std::string& folder, int workers) {
  const std::string ps_address = absl::StrCat("127.0.0.1:", FreePort());
  std::vector<std::string> addresses;
  for (int i = 0; i < workers; ++i) addresses.push_back(absl::StrCat("127.0.0.1:", FreePort()));
  const auto command = [&](const std::string& role, int task, const std::string& out) -> std::vector<std::string> {
    return {SourceFolder() + "/build/peers/bin/python",
            SourceFolder() + "/bench/tensorflow_sparse.py",
            "--role",
            role,
            "--task",
            absl::StrCat(task),
            "--ps",
            ps_address,
            "--workers",
            absl::StrJoin(addresses, ","),
            "--rows",
            absl::StrCat(options.rows),
            "--width",
            absl::StrCat(options.width),
            "--batch",
            absl::StrCat(options.batch),
            "--seconds",
            absl::StrCat(options.seconds),
            "--out",
            out};
  };
  const std::string round = std::filesystem::path(folder) / absl::StrCat("tensorflow-", ps_address.substr(10));
  const pid_t ps = Start(command("ps", 0, ""), {}, round + ".ps.log");
  std::vector<pid_t> children;
  std::vector<std::string> outs;
  for (int i = 0; i < workers; ++i) {
    outs.push_back(absl::StrCat(round, ".worker", i));
    children.push_back(Start(command("worker", i, outs.back()), {}, outs.back() + ".log"));
  }
  const Rates rates = SumOf(children, outs);
  kill(ps, SIGKILL);  // it never ends on its own
  WaitFor(ps);
  return rates;
}

// Returns true if there is a TensorFlow to compare with.
bool InstallTensorFlow(const std::string& folder) {
  const std::string log = folder + "/install.log";
  const std::string script = SourceFolder() + "/bench/peers/environment.py";
  if (WaitFor(Start({"/usr/bin/env", "python3", script, "tensorflow"}, {}, log)) == 0) return true;
  ShowEnd(log);
  std::fprintf(stderr, "SKIPPED: TensorFlow, which can't be installed\n");
  return false;
}

// The results of every round, by number of workers and way (kApplies, kTensorFlow).
using Measured = std::map<std::pair<int, std::string>, std::vector<Rates>>;

Measured MeasureRounds(const Options& options, const std::string& folder, bool tensorflow) {
  std::vector<std::pair<int, std::string>> order;
  for (const int workers : {1, 2}) {
    for (const char* apply : kApplies) order.emplace_back(workers, apply);
    if (tensorflow) order.emplace_back(workers, kTensorFlow);
  }
  Measured measured;
  for (int round = 0; round < options.rounds; ++round) {
    for (const size_t i : Turns(order.size(), round)) {
      const auto& [workers, way] = order[i];
      const Rates rates = way == kTensorFlow ? MeasureTensorFlow(options, folder, workers)
                                             : MeasureMuster(options, folder, way, workers);
      measured[{workers, way}].push_back(rates);
      std::fprintf(stderr, "round %d of %d, %d workers, %s: %.2f %.2f million rows/s\n", round + 1, options.rounds,
                   workers, way.c_str(), rates[0] / 1e6, rates[1] / 1e6);
    }
  }
  return measured;
}

// Returns the values of all rounds.
Spread SpreadOf(const Measured& measured, int workers, const std::string& way, size_t mode) {
  std::vector<double> values;
  for (const Rates& rates : measured.at({workers, way})) values.push_back(rates[mode]);
  return bench::SpreadOf(std::move(values));
}

int Report(const Options& options) {
  const std::string folder = std::filesystem::temp_directory_path() / absl::StrCat("bench-sparse-", getpid());
  std::filesystem::create_directories(folder);
  const bool tensorflow = InstallTensorFlow(folder);
  const Measured measured = MeasureRounds(options, folder, tensorflow);
  std::filesystem::remove_all(folder);
  std::fprintf(stderr, "%-10s %-10s %8s %16s %8s %8s %16s %7s\n", "mode", "apply", "workers", "million rows/s", "least",
               "most", "TensorFlow's", "ratio");
  bool good = true;
  for (const int workers : {1, 2})
    for (size_t mode = 0; mode < kModes.size(); ++mode)
      for (const char* apply : kApplies) {
        const auto [rate, least, most] = SpreadOf(measured, workers, apply, mode);
        const double peer = tensorflow ? SpreadOf(measured, workers, kTensorFlow, mode).median : 0;
        good = good && rate > 0 && (peer > 0 || !tensorflow);
        nlohmann::ordered_json row = {{"bench", "sparse"},      {"mode", kModes[mode]}, {"apply", apply},
                                      {"workers", workers},     {"rows", options.rows}, {"width", options.width},
                                      {"batch", options.batch}, {"rule", "sgd"},        {"rows_per_s", rate},
                                      {"least", least},         {"most", most}};
        if (tensorflow) {
          row["tensorflow_rows_per_s"] = peer;
          row["ratio"] = rate / peer;
        }
        std::printf("%s\n", row.dump().c_str());
        std::fprintf(stderr, "%-10s %-10s %8d %16.2f %8.2f %8.2f %16.2f %7.2f\n", kModes[mode], apply, workers,
                     rate / 1e6, least / 1e6, most / 1e6, peer / 1e6, tensorflow ? rate / peer : 0);
      }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  muster::bench::Options options;
  CLI::App app("Rows a second of look-ups and updates in a large table, beside TensorFlow's.", "bench_sparse");
  app.add_option("--rows", options.rows, "rows in the table")->capture_default_str();
  app.add_option("--width", options.width, "floats per row")->capture_default_str();
  app.add_option("--batch", options.batch, "rows per step")->capture_default_str();
  app.add_option("--seconds", options.seconds, "length of each measurement")->capture_default_str();
  app.add_option("--rounds", options.rounds, "number of interleaved rounds; medians are over them")
      ->capture_default_str();
  app.add_option("--role", options.role, "role of a process that this program starts")->group("");
  app.add_option("--out", options.out, "file for that process's rates")->group("");
  app.add_option("--ps", options.ps)->group("");
  app.add_option("--apply", options.apply)->group("");
  app.add_option("--task", options.task)->group("");
  app.add_option("--workers", options.workers)->group("");
  CLI11_PARSE(app, argc, argv);
  return options.role == "worker" ? muster::bench::Work(options) : muster::bench::Report(options);
}
