// Trains a small convolutional network on handwritten digits: the same program alone, by hand in several terminals,
// with TF_CONFIG, or under `muster run`. README.md shows the four ways.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <thread>

#include "absl/strings/str_format.h"
#include "examples/digits/accuracy.h"
#include "examples/digits/example_flags.h"
#include "examples/digits/input.h"
#include "examples/digits/net.h"
#include "examples/digits/report.h"
#include "muster/algo/choice/algorithm_table.h"
#include "muster/base/log.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/muster.h"
#include "muster/summary/event_file_writer.h"

namespace {

struct Flags : ExampleFlags {
  int64_t save_steps = 500;
  double ps_timeout = 60;
  bool allow_older_checkpoint = false;
  std::string report;
  std::string apply = "auto";
  int threads = 1;
  std::string transport = "auto";
  std::string wire_gradients = "fp32";
  std::string wire_parameters = "fp32";
};

Flags ParseFlags(int argc, char** argv) {
  Flags flags;
  CLI::App app(
      "Trains a small convolutional network on handwritten digits by --algorithm:\nhogwild unless it says otherwise, "
      "with "
      "adam if the workers have no rule of their own.",
      "digits");
  AddExampleFlags(app, flags);
  app.add_option("--save_steps", flags.save_steps, "steps between checkpoints; 0: none")
      ->type_name("N")
      ->capture_default_str()
      ->check(NumberFromZero);
  app.add_option("--threads", flags.threads, "threads that a process computes with; 0: by its host's cores and tasks")
      ->type_name("N")
      ->capture_default_str()
      ->check(NumberFromZero);
  app.add_option("--report", flags.report, "the chief writes a JSON report of the run to this file")->type_name("FILE");
  app.add_option("--ps_timeout", flags.ps_timeout,
                 "how long a process waits for an answer from a ps before it gives up")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(NumberFromZero);
  app.add_flag("--allow_older_checkpoint", flags.allow_older_checkpoint,
               "if the newest checkpoint is damaged, go on from the newest good one");
  app.add_option(
         "--apply", flags.apply,
         "what applies this worker's updates: server (the ps), direct (the worker, in the memory of the ps, which "
         "must be on its host), or auto")
      ->type_name("WHO")
      ->capture_default_str()
      ->check(CLI::IsMember({"server", "direct", "auto"}));
  app.add_option("--transport", flags.transport,
                 "how this worker talks with ps on its host: auto (shared memory) or tcp, which implies --apply server")
      ->type_name("HOW")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "tcp"}));
  const auto add_wire_option = [&app](const std::string& name, std::string& precision, const std::string& what) {
    app.add_option(name, precision, what)
        ->type_name("TYPE")
        ->capture_default_str()
        ->check(CLI::IsMember({"fp32", "bf16", "fp16"}));
  };
  add_wire_option("--wire_gradients", flags.wire_gradients,
                  "precision of gradients sent to the ps: bf16 and fp16 take half the bytes; fp16 makes what is above "
                  "65504 infinite");
  add_wire_option("--wire_parameters", flags.wire_parameters, "precision of parameters pulled from the ps");
  ParseOrExit(app, argc, argv);
  return flags;
}

// Returns the user's choice, by default Hogwild; with Adam if workers have no rule of their own.
muster::AlgorithmChoice ChooseAlgorithm(int& argc, char** argv) {
  auto choice = muster::AlgorithmChoice::FromCommandLine(argc, argv, {.name = "hogwild"});
  const auto& parameters = muster::FindAlgorithm(choice.name)->parameters;
  const bool workers_step =
      std::any_of(parameters.begin(), parameters.end(),
                  [](const muster::ParameterInfo& parameter) { return parameter.name == "worker_rule"; });
  if (!workers_step) choice.parameters.emplace("server_rule", "adam");
  return choice;
}

// Evaluates each new checkpoint until that of the last step.
void Evaluate(muster::Server& server, Net& net, const Flags& flags, const Examples& test) {
  muster::Replica replica(server, net);
  const std::string& model_dir = server.task().model_dir();
  if (model_dir.empty()) {
    std::fprintf(stderr, "digits: an evaluator needs --model_dir, the folder of the checkpoints that it scores\n");
    std::exit(static_cast<int>(muster::ExitCode::kUsage));
  }
  for (std::string seen;; std::this_thread::sleep_for(std::chrono::milliseconds(200))) {
    const auto latest = muster::LatestCheckpoint(muster::PosixFileSystem(), model_dir, {.verify_checksums = false});
    muster::ThrowIfError(latest.status());
    if (!latest->has_value() || **latest == seen) continue;
    seen = **latest;
    const auto checkpoint = muster::CheckpointReader::Open(muster::PosixFileSystem(), seen);
    // A newer save may have removed it meanwhile; the next round finds the newer one.
    if (absl::IsNotFound(checkpoint.status())) continue;
    muster::ThrowIfError(checkpoint.status());
    replica.Load(**checkpoint);
    const int64_t step = (*checkpoint)->manifest().global_step;
    muster::LogInfo("Saving dict for global step ", step,
                    ": accuracy = ", absl::StrFormat("%.4f", Accuracy(net, test)));
    if (step >= flags.steps) return;
  }
}

// Writes it for TensorBoard and for `muster results --metric test_accuracy`.
void WriteTestAccuracy(const std::string& model_dir, const RunReport& report) {
  const auto summaries = muster::EventFileWriter::Open(muster::PosixFileSystem(), muster::RealClock(), model_dir, {});
  muster::ThrowIfError(summaries.status());
  const auto accuracy = static_cast<float>(report.accuracy);
  muster::ThrowIfError((*summaries)->AddScalar("test_accuracy", accuracy, report.global_steps));
  muster::ThrowIfError((*summaries)->Close());
}

void Train(muster::Server& server, Net& net, const muster::AlgorithmChoice& choice, const Flags& flags,
           const muster::ImageData& data) {
  const muster::TaskConfig& task = server.task();
  muster::Replica replica(server, net, {.placement = muster::Placement::kGreedyBySize});
  muster::Trainer trainer = muster::MakeTrainer(replica, choice);
  Input input(data, flags.batch_size, flags.seed, task.global_id(), task.num_workers());

  muster::SessionOptions options{.checkpoint_dir = task.model_dir(),
                                 .save_checkpoint_steps = flags.save_steps,
                                 .allow_older_checkpoint = flags.allow_older_checkpoint,
                                 .saveables = {input.Position()}};
  muster::MonitoredTrainingSession session(
      server, options, {muster::StopAtStep({.last_step = flags.steps}), muster::LoggingTensor(), muster::NanTensor()});

  const int64_t first_step = session.global_step();
  const auto start = std::chrono::steady_clock::now();
  while (!session.ShouldStop()) {
    session.Run(trainer, [&] {
      const Examples batch = input.Next();
      return torch::nn::functional::cross_entropy(net->forward(batch.images.to(replica.device())),
                                                  batch.labels.to(replica.device()));
    });
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;

  if (!session.is_chief()) return;
  RunReport report{.seconds = seconds.count(), .steps_in_that_time = session.global_step() - first_step};
  auto status = server.node().PsStatus();
  muster::ThrowIfError(status.status());
  report.ps_status = *std::move(status);
  session.Close();  // commits the last window and pulls the global values into the net
  report.accuracy = Accuracy(net, AllOf(data.split.test, data));
  report.global_steps = session.global_step();
  report.checkpoint = session.last_checkpoint();
  muster::LogInfo("Test accuracy ", absl::StrFormat("%.4f", report.accuracy), " after ", report.global_steps,
                  " steps, ", absl::StrFormat("%.1f", static_cast<double>(report.steps_in_that_time) / report.seconds),
                  " steps/s");
  if (!task.model_dir().empty()) WriteTestAccuracy(task.model_dir(), report);
  if (!flags.report.empty()) WriteReport(flags.report, report);
}

}  // namespace

int main(int argc, char** argv) {
  const auto task = muster::TaskConfig::FromCommandLine(argc, argv);
  const muster::AlgorithmChoice choice = ChooseAlgorithm(argc, argv);
  const Flags flags = ParseFlags(argc, argv);
  if (task.is_ps()) return muster::Server(task).Join();

  const muster::ImageData data = LoadImages(flags.data_dir, flags.csv);
  muster::SeedTorch(flags.seed);
  Net net(data.height, data.width, data.classes);
  muster::Server server(task, {.patience = absl::Seconds(flags.ps_timeout),
                               .apply = muster::ParseApplyChoice(flags.apply).value(),
                               .transport = muster::ParseTransportChoice(flags.transport).value(),
                               .wire = {.gradients = muster::ParseWirePrecision(flags.wire_gradients).value(),
                                        .parameters = muster::ParseWirePrecision(flags.wire_parameters).value()},
                               .threads = flags.threads});
  if (task.is_evaluator()) {
    Evaluate(server, net, flags, AllOf(data.split.test, data));
  } else {
    Train(server, net, choice, flags, data);
  }
  return 0;
}
