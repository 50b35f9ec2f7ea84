// `bench ps`: what a stand-alone parameter server costs before it is used: the time from its start until it answers,
// its memory, its processor time when idle; also the processor time of a waiting worker. Rows on stdout are JSON, the
// table is on stderr.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/support/process.h"
#include "bench/support/rounds.h"
#include "bench/support/waiting_worker.h"
#include "muster/store/messages/messages.h"
#include "muster/transport/tcp/tcp_transport.h"

namespace muster::bench {
namespace {

// Share of a core that an idle ps and a waiting worker must stay below.
constexpr double kGoalShare = 0.01;

const char* Verdict(double share) { return share < kGoalShare ? "met" : "NOT MET"; }

struct Sample {
  double serving_ms = 0;   // from exec until the status request is answered
  double resident_mb = 0;  // VmRSS
  double idle_share = 0;   // of one core, while it serves
};

double ResidentMegabytes(pid_t process) {
  std::ifstream status(absl::StrCat("/proc/", process, "/status"));
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmRSS:", 0) == 0) return std::stod(line.substr(6)) / 1024;
  return 0;
}

bool Answers(TcpEventLoop& loop, Channel& channel) {
  bool done = false, good = false;
  channel.Call({.method = static_cast<uint16_t>(StoreMethod::kStatus), .deadline = loop.Now() + absl::Seconds(10)},
               [&](absl::StatusOr<Reply> reply) {
                 done = true;
                 good = reply.ok();
               });
  loop.RunUntil([&] { return done; }, absl::InfiniteFuture());
  return good;
}

Sample Measure(double idle_seconds) {
  const int port = FreePort();
  const std::string address = absl::StrCat("127.0.0.1:", port);
  const nlohmann::json config = {{"cluster", {{"ps", {address}}, {"worker", {absl::StrCat("127.0.0.1:", FreePort())}}}},
                                 {"task", {{"type", "ps"}, {"index", 0}}}};
  TcpEventLoop loop;
  // Retries at once, so that the back-off doesn't count as the server's time.
  TcpTransport transport(loop, {}, {.backoff = {.min = absl::Milliseconds(1), .max = absl::Milliseconds(1)}});
  const auto start = std::chrono::steady_clock::now();
  const pid_t ps = Start({SiblingProgram("muster"), "ps"}, {{"TF_CONFIG", config.dump()}}, "/dev/null");
  Sample sample;
  {
    const auto channel = transport.Connect(address);
    if (!Answers(loop, *channel)) return sample;
    sample.serving_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }
  const double busy = CpuSeconds(ps);
  loop.RunUntil([] { return false; }, loop.Now() + absl::Seconds(idle_seconds));
  sample.idle_share = (CpuSeconds(ps) - busy) / idle_seconds;
  sample.resident_mb = ResidentMegabytes(ps);
  kill(ps, SIGTERM);
  WaitFor(ps);
  return sample;
}

int Report(int rounds, double idle_seconds) {
  std::vector<double> serving, resident, idle;
  for (int round = 0; round < rounds; ++round) {
    const Sample sample = Measure(idle_seconds);
    serving.push_back(sample.serving_ms);
    resident.push_back(sample.resident_mb);
    idle.push_back(sample.idle_share);
  }
  const nlohmann::ordered_json row = {{"bench", "ps"},
                                      {"serving_ms", Median(serving)},
                                      {"resident_mb", Median(resident)},
                                      {"idle_core_share", Median(idle)},
                                      {"idle_met", Median(idle) < kGoalShare}};
  std::printf("%s\n", row.dump().c_str());
  std::fprintf(stderr, "muster ps: serving after %.1f ms, %.1f MB resident, %.2f %% of a core over %.0f idle s: %s\n",
               Median(serving), Median(resident), 100 * Median(idle), idle_seconds, Verdict(Median(idle)));
  return Median(serving) > 0 ? 0 : 1;
}

int ReportWaiting(double seconds) {
  bool good = true;
  for (const std::string& what : Waits()) {
    const std::optional<double> share = WaitingShare(what, seconds);
    good = good && share.has_value();
    nlohmann::ordered_json row = {{"bench", "waiting"}, {"for", what}, {"core_share", nullptr}};
    if (share) row["core_share"] = *share;
    if (share) row["met"] = *share < kGoalShare;
    std::printf("%s\n", row.dump().c_str());
    const std::string shown = share ? absl::StrFormat("%.2f %% of a core: %s", 100 * *share, Verdict(*share))
                                    : "ended before it was measured";
    std::fprintf(stderr, "a worker that waits for %-24s %s\n", what.c_str(), shown.c_str());
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  int rounds = 5;
  double idle_seconds = 2;
  CLI::App app("Start-up time, memory and idle cost of muster ps.", "bench_ps");
  app.add_option("--rounds", rounds, "number of starts; medians are over them")->capture_default_str();
  app.add_option("--idle_seconds", idle_seconds, "how long each is left idle")->capture_default_str();
  double waiting_seconds = 5;
  std::string wait_for;
  app.add_option("--waiting_seconds", waiting_seconds, "how long each waiting worker is measured; 0: skip")
      ->capture_default_str();
  // For a process of a measurement.
  app.add_option("--wait_for", wait_for)->group("")->check(CLI::IsMember(muster::bench::Waits()));
  CLI11_PARSE(app, argc, argv);
  if (!wait_for.empty()) return muster::bench::WaitAs(wait_for);
  const int idle = muster::bench::Report(rounds, idle_seconds);
  return waiting_seconds > 0 ? std::max(idle, muster::bench::ReportWaiting(waiting_seconds)) : idle;
}
