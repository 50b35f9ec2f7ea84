// `bench collective`: GB/s of all-reduce among the processes of this host, on private data that each rank rewrites
// before every call: through shared memory, through the ring over TCP, and by torch.distributed with Gloo, in turns in
// one run, every other round backwards. Beside them stand the limits: memcpy of as many bytes; `apart`, a rank's own
// copying and adding, in memory that no other core has cached; `exchange`, only the reading: every rank reads its share
// of the others' data, and their shares of its own, as last written, and meets the others three times. Rows on stdout
// are JSON, the table is on stderr. PyTorch is taken from the project's virtual environment (./dev setup); without it,
// that part is skipped with a message.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/support/goal.h"
#include "bench/support/process.h"
#include "bench/support/rounds.h"
#include "muster/base/check.h"
#include "muster/base/clock.h"
#include "muster/base/testing/built_at.h"
#include "muster/collective/group/join_group.h"
#include "muster/collective/rank_sum.h"
#include "muster/collective/share.h"

namespace muster::bench {
namespace {

constexpr int kWarmUp = 5;
// As in the all-reduce through shared memory.
constexpr size_t kChunkBytes = size_t{256} << 10;
constexpr size_t kSlots = 3;

struct Options {
  std::vector<double> megabytes = {1, 16, 100};
  int ranks = 2;
  int rounds = 5;
  double seconds = 1;
  std::string python = SourceFolder() + "/.venv/bin/python";
  std::vector<std::string> ways = {"shm", "ring", "gloo", "exchange", "apart", "memcpy"};
  // For a process that this program starts itself.
  std::string role;
  std::string out;
  int rank = 0;
  std::vector<std::string> addresses;
};

void Must(const absl::Status& status) {
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  MUSTER_CHECK(status.ok());
}

// Enough work for several milliseconds, so that a clock's tick doesn't matter, and enough calls for a median.
int CallsFor(const Options& options, double megabytes) {
  return std::max(7, static_cast<int>(options.seconds * 2000 / (1 + megabytes)));
}

size_t FloatsOf(double megabytes) { return static_cast<size_t>(megabytes * 1e6 / sizeof(float)); }

void Rewrite(std::vector<float>& data, int call) {
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>((i + call) % 17);
}

// Times `work` on data that is rewritten before every call, once `prepare` has returned; `check` then looks at the
// result. Returns the seconds of the median call.
double MedianCall(
    const Options& options, double megabytes, std::vector<float>& data, const std::function<void()>& work,
    const std::function<void(int rewritten)>& check, const std::function<void()>& prepare = [] {}) {
  std::vector<double> seconds;
  for (int call = 0; call < kWarmUp + CallsFor(options, megabytes); ++call) {
    Rewrite(data, call);
    prepare();
    const double taken = SecondsOf(work);
    if (call >= kWarmUp) seconds.push_back(taken);
    check(call);
  }
  return Median(seconds);
}

// Returns the seconds of the median call, for every size.
std::vector<double> MeasureRank(const Options& options, Collective& group) {
  std::vector<double> medians;
  for (const double megabytes : options.megabytes) {
    std::vector<float> data(FloatsOf(megabytes));
    const Segments in = {AsBytes(data.data(), data.size())};
    const MutableSegments out = {AsMutableBytes(data.data(), data.size())};
    const auto check = [&](int rewritten) {
      for (size_t i = 0; i < data.size(); i += 997)
        MUSTER_CHECK(data[i] == static_cast<float>(group.size() * ((i + rewritten) % 17)));
    };
    medians.push_back(MedianCall(
        options, megabytes, data,
        [&] { Must(group.AllReduce(in, out, DType::kFloat32, Reduction::kSum, absl::InfiniteFuture())); }, check,
        [&] { Must(group.Barrier(absl::InfiniteFuture())); }));
  }
  return medians;
}

std::vector<double> MeasureMemcpy(const Options& options) {
  std::vector<double> medians;
  for (const double megabytes : options.megabytes) {
    std::vector<float> data(FloatsOf(megabytes)), copy(data.size());
    medians.push_back(MedianCall(
        options, megabytes, data, [&] { std::memcpy(copy.data(), data.data(), data.size() * sizeof(float)); },
        [&](int) { MUSTER_CHECK(copy.back() == data.back()); }));
  }
  return medians;
}

// A rank's part in an all-reduce through shared memory (docs/collectives.md), without other ranks: chunk by chunk it
// writes its data of the others' shares, adds up its own share, and copies theirs, in slots that no other core has
// cached.
void ReduceApart(std::vector<float>& data, int ranks, std::vector<float>& shared, const std::vector<float>& others) {
  const size_t piece = shared.size() / kSlots / ranks;
  const auto n_of = [&](int rank, size_t from) {
    const Share share = ShareOf(data.size(), rank, ranks);
    return from < share.elements ? std::min(piece, share.elements - from) : 0;
  };
  const auto data_of = [&](int rank, size_t from) { return &data[ShareOf(data.size(), rank, ranks).begin + from]; };
  for (size_t from = 0, chunk = 0; n_of(0, from) > 0; from += piece, ++chunk) {
    const auto slot_of = [&](int rank) { return (chunk % kSlots * ranks + rank) * piece; };
    for (int rank = 1; rank < ranks; ++rank)
      if (n_of(rank, from) > 0)
        std::memcpy(&shared[slot_of(rank)], data_of(rank, from), n_of(rank, from) * sizeof(float));
    auto* const own = reinterpret_cast<std::byte*>(data_of(0, from));
    std::vector<const std::byte*> all = {own};
    for (int rank = 1; rank < ranks; ++rank) all.push_back(reinterpret_cast<const std::byte*>(&others[slot_of(rank)]));
    SumOfRanks(DType::kFloat32, Reduction::kSum, all, n_of(0, from), own,
               reinterpret_cast<std::byte*>(&shared[slot_of(0)]));
    for (int rank = 1; rank < ranks; ++rank)
      if (n_of(rank, from) > 0)
        std::memcpy(data_of(rank, from), &others[slot_of(rank)], n_of(rank, from) * sizeof(float));
  }
}

std::vector<double> MeasureApart(const Options& options) {
  std::vector<double> medians;
  for (const double megabytes : options.megabytes) {
    std::vector<float> data(FloatsOf(megabytes));
    std::vector<float> shared(kSlots * kChunkBytes / sizeof(float)), others(shared.size(), 1.0f);
    medians.push_back(MedianCall(
        options, megabytes, data, [&] { ReduceApart(data, options.ranks, shared, others); },
        [&](int rewritten) { MUSTER_CHECK(data[0] == static_cast<float>(rewritten % 17 + options.ranks - 1)); }));
  }
  return medians;
}

// Waits until all ranks have come.
class Meeting {
 public:
  explicit Meeting(int ranks) : ranks_(ranks) {}
  // `times` says how often this thread has met, including this time.
  void Meet(int times) {
    ++came_;
    while (came_ < times * ranks_) std::this_thread::yield();
  }

 private:
  const int ranks_;
  std::atomic<int> came_{0};
};

// Ranks are threads that read each other's memory: nothing is added, and nothing is copied through another buffer.
std::vector<double> MeasureExchange(const Options& options) {
  std::vector<double> medians;
  for (const double megabytes : options.megabytes) {
    const size_t floats = FloatsOf(megabytes);
    std::vector<std::vector<float>> data(options.ranks, std::vector<float>(floats));
    Meeting meeting(options.ranks);
    std::vector<double> seconds;
    const auto run = [&](int rank) {
      std::vector<float> got(floats);
      const auto get = [&](int from, int share) {
        const Share part = ShareOf(floats, share, options.ranks);
        std::memcpy(&got[part.begin], &data[from][part.begin], part.elements * sizeof(float));
      };
      int met = 0;
      for (int call = -kWarmUp; call < CallsFor(options, megabytes); ++call) {
        Rewrite(data[rank], call + kWarmUp);
        meeting.Meet(++met);
        const auto start = std::chrono::steady_clock::now();
        for (int other = 0; other < options.ranks; ++other)
          if (other != rank) get(other, rank);
        meeting.Meet(++met);
        for (int other = 0; other < options.ranks; ++other)
          if (other != rank) get(other, other);
        meeting.Meet(++met);
        if (rank == 0 && call >= 0) seconds.push_back(SecondsSince(start));
      }
    };
    std::vector<std::thread> threads;
    for (int rank = 0; rank < options.ranks; ++rank) threads.emplace_back(run, rank);
    for (std::thread& thread : threads) thread.join();
    medians.push_back(Median(seconds));
  }
  return medians;
}

int Work(const Options& options) {
  std::vector<double> seconds;
  if (options.role == "memcpy") {
    seconds = MeasureMemcpy(options);
  } else if (options.role == "exchange") {
    seconds = MeasureExchange(options);
  } else if (options.role == "apart") {
    seconds = MeasureApart(options);
  } else {
    GroupOptions group{.rank = options.rank, .addresses = options.addresses};
    for (size_t rank = 0; rank < options.addresses.size(); ++rank) group.names.push_back(absl::StrCat("rank ", rank));
    group.choice = options.role == "ring" ? CollectiveChoice::kRing : CollectiveChoice::kShm;
    auto joined = JoinGroup(group, RealClock().Now() + absl::Seconds(60));
    Must(joined.status());
    seconds = MeasureRank(options, **joined);
    Must((*joined)->Barrier(absl::InfiniteFuture()));
    (*joined)->Leave();
  }
  std::ofstream(options.out) << absl::StrJoin(seconds, " ") << "\n";
  return 0;
}

// True if one process measures everything.
bool IsReference(const std::string& way) { return way == "memcpy" || way == "exchange" || way == "apart"; }

// Returns the GB/s of every size in one round; zeros if a process failed. The slowest rank counts.
std::vector<double> MeasureWay(const Options& options, const std::string& folder, const std::string& way) {
  const int ranks = IsReference(way) ? 1 : options.ranks;  // processes
  std::vector<std::string> addresses;
  for (int rank = 0; rank < ranks; ++rank) addresses.push_back(absl::StrCat("127.0.0.1:", FreePort()));
  std::vector<int> calls;
  for (const double megabytes : options.megabytes) calls.push_back(CallsFor(options, megabytes));
  std::vector<pid_t> children;
  std::vector<std::string> outs;
  for (int rank = 0; rank < ranks; ++rank) {
    outs.push_back(absl::StrCat(folder, "/", way, rank));
    const std::string sizes = absl::StrJoin(options.megabytes, ",");
    if (way == "gloo") {
      const std::string script = SourceFolder() + "/bench/gloo_all_reduce.py";
      children.push_back(Start(
          {options.python, script, "--rank", absl::StrCat(rank), "--ranks", absl::StrCat(ranks), "--port",
           addresses[0].substr(10), "--megabytes", sizes, "--calls", absl::StrJoin(calls, ","), "--out", outs.back()},
          {}, outs.back() + ".log"));
    } else {
      children.push_back(
          StartSelf({"--role", way, "--rank", absl::StrCat(rank), "--addresses", absl::StrJoin(addresses, ","),
                     "--megabytes", sizes, "--seconds", absl::StrCat(options.seconds), "--ranks",
                     absl::StrCat(options.ranks), "--out", outs.back()},
                    {}, outs.back() + ".log"));
    }
  }
  std::vector<double> slowest(options.megabytes.size());
  bool good = true;
  for (size_t rank = 0; rank < children.size(); ++rank) {
    if (WaitFor(children[rank]) != 0) {
      ShowEnd(outs[rank] + ".log");
      good = false;
    }
    std::ifstream file(outs[rank]);
    double seconds = 0;
    for (size_t i = 0; i < slowest.size() && file >> seconds; ++i) slowest[i] = std::max(slowest[i], seconds);
  }
  std::vector<double> rates(slowest.size());
  for (size_t i = 0; i < rates.size() && good; ++i) rates[i] = options.megabytes[i] * 1e6 / slowest[i] / 1e9;
  return rates;
}

bool HasPyTorch(const Options& options, const std::string& folder) {
  if (std::filesystem::exists(options.python) &&
      WaitFor(Start({options.python, "-c", "import torch.distributed"}, {}, folder + "/torch.log")) == 0)
    return true;
  std::fprintf(stderr, "SKIPPED: Gloo, for %s has no PyTorch (./dev setup installs it)\n", options.python.c_str());
  return false;
}

// Compares two ranks in shared memory with Gloo, for the sizes that have a goal.
void PrintGoals(const Options& options, const std::function<double(const std::string& way, size_t size)>& median) {
  const std::map<double, double> goals = {{1, 40}, {16, 8}, {100, 5}};
  for (size_t size = 0; size < options.megabytes.size(); ++size) {
    const auto goal = goals.find(options.megabytes[size]);
    if (goal == goals.end() || options.ranks != 2) continue;
    const double ours = median("shm", size), gloo = median("gloo", size);
    PrintGoal({.bench = "collective",
               .what = absl::StrCat("all-reduce of 2 ranks, ", goal->first, " MB, over Gloo"),
               .bound = goal->second,
               .unit = " x"},
              ours > 0 && gloo > 0 ? std::optional(ours / gloo) : std::nullopt,
              absl::StrCat(ours > 0 ? "Gloo" : "shm", " wasn't measured, or failed"));
  }
}

int Report(Options options) {
  const std::string folder = std::filesystem::temp_directory_path() / absl::StrCat("bench-collective-", getpid());
  std::filesystem::create_directories(folder);
  if (!HasPyTorch(options, folder)) std::erase(options.ways, "gloo");
  std::map<std::string, std::vector<std::vector<double>>> measured;  // by way: each round's rates
  for (int round = 0; round < options.rounds; ++round)
    for (const size_t i : Turns(options.ways.size(), round))
      measured[options.ways[i]].push_back(MeasureWay(options, folder, options.ways[i]));
  std::filesystem::remove_all(folder);
  const auto spread = [&](const std::string& way, size_t size) {
    std::vector<double> values;
    for (const std::vector<double>& rates : measured[way]) values.push_back(rates[size]);
    return SpreadOf(values);
  };
  const auto median = [&](const std::string& way, size_t size) { return spread(way, size).median; };
  std::fprintf(stderr, "%-8s %6s %6s %9s %8s %8s %8s %8s %8s %10s\n", "way", "ranks", "MB", "us", "GB/s", "least",
               "most", "x Gloo", "x memcpy", "x exchange");
  bool good = true;
  for (size_t size = 0; size < options.megabytes.size(); ++size)
    for (const std::string& way : options.ways) {
      const auto [rate, least, most] = spread(way, size);
      const double gloo = median("gloo", size), memcpy = median("memcpy", size), exchange = median("exchange", size);
      good = good && rate > 0;
      nlohmann::ordered_json row = {{"bench", "collective"},
                                    {"operation", "all_reduce"},
                                    {"way", way},
                                    {"ranks", way == "memcpy" || way == "apart" ? 1 : options.ranks},
                                    {"megabytes", options.megabytes[size]},
                                    {"us", rate > 0 ? options.megabytes[size] * 1e3 / rate : 0},
                                    {"gb_per_s", rate},
                                    {"least", least},
                                    {"most", most}};
      if (gloo > 0) row["ratio_to_gloo"] = rate / gloo;
      if (exchange > 0) row["ratio_to_exchange"] = rate / exchange;
      if (memcpy > 0) row["ratio_to_memcpy"] = rate / memcpy;
      std::printf("%s\n", row.dump().c_str());
      std::fprintf(stderr, "%-8s %6d %6.3g %9.0f %8.2f %8.2f %8.2f %8.2f %8.2f %10.2f\n", way.c_str(),
                   row["ranks"].get<int>(), options.megabytes[size], row["us"].get<double>(), rate, least, most,
                   gloo > 0 ? rate / gloo : 0, memcpy > 0 ? rate / memcpy : 0, exchange > 0 ? rate / exchange : 0);
    }
  PrintGoals(options, median);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  muster::bench::Options options;
  CLI::App app("All-reduce among the processes of a host, beside Gloo's and memcpy.", "bench_collective");
  app.add_option("--megabytes", options.megabytes, "sizes")->delimiter(',')->capture_default_str();
  app.add_option("--ranks", options.ranks, "processes")->capture_default_str();
  app.add_option("--rounds", options.rounds, "number of interleaved rounds; medians are over them")
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "approximate length of each measurement")->capture_default_str();
  app.add_option("--ways", options.ways, "shm, ring, gloo, exchange, apart, memcpy")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--python", options.python, "python of an environment with PyTorch")->capture_default_str();
  app.add_option("--role", options.role, "role of a process that this program starts")->group("");
  app.add_option("--out", options.out, "file for that process's times")->group("");
  app.add_option("--rank", options.rank)->group("");
  app.add_option("--addresses", options.addresses)->delimiter(',')->group("");
  CLI11_PARSE(app, argc, argv);
  return options.role.empty() ? muster::bench::Report(options) : muster::bench::Work(options);
}
