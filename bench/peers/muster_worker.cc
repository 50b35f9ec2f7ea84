// This project's side of `bench peers` (bench/peers/run.py starts it): one training process, in one of several ways.
//
//   peers_muster --ways                            what it can do, as JSON
//   peers_muster --write --data DIR --model M      writes what all frameworks read (data.h)
//   peers_muster --way W --data DIR --model M --folder RUN (--seconds S | --steps N), TF_CONFIG in the environment
#include <torch/torch.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/peers/buffer_source.h"
#include "bench/peers/data.h"
#include "bench/support/meter.h"
#include "muster/algo/algorithms/asynchronous.h"
#include "muster/muster.h"

namespace muster::bench {
namespace {

// A way to train, by its name in the table of `bench peers`.
struct Way {
  std::string name;
  std::string kind;  // "alone", "asynchronous", "synchronous"; "reference": only its losses count
  ApplyChoice apply = ApplyChoice::kAuto;
  TransportChoice transport = TransportChoice::kAuto;  // on one host: shared memory
  bool ps = true;                                      // it needs a ps
};

const std::vector<Way>& Ways() {
  static const std::vector<Way> kWays = {
      {.name = "local", .kind = "alone"},
      {.name = "direct", .kind = "asynchronous", .apply = ApplyChoice::kDirect},
      {.name = "shm", .kind = "asynchronous", .apply = ApplyChoice::kServer},
      {.name = "tcp", .kind = "asynchronous", .apply = ApplyChoice::kServer, .transport = TransportChoice::kTcp},
      {.name = "synchronous", .kind = "synchronous"},
      {.name = "all_reduce", .kind = "synchronous", .ps = false},
      {.name = "in_turn", .kind = "reference"},
      {.name = "in_step", .kind = "reference"},
  };
  return kWays;
}

struct Options {
  std::string way;
  std::string data;
  std::string model;
  MeterOptions meter;
};

// One process without muster, with plain SGD.
class Alone {
 public:
  explicit Alone(const Options& options)
      : model_(MakePeerModel(options.model, true)), learning_rate_(LearningRateOf(options.data, options.model)) {
    LoadInitialValues(*model_.module, options.data, options.model);
    parameters_ = model_.module->parameters();
  }

  torch::Tensor Loss(const PeerBatch& batch) { return model_.Loss(batch); }

  void Update(const torch::Tensor& loss) {
    loss.backward();
    const torch::NoGradGuard no_grad;
    for (torch::Tensor& parameter : parameters_) {
      parameter.add_(parameter.grad(), -learning_rate_);
      parameter.mutable_grad().reset();
    }
  }

 private:
  const PeerModel model_;
  const double learning_rate_;
  std::vector<torch::Tensor> parameters_;
};

// Runs the fastest plain loop of one libtorch process.
void WorkAlone(const Options& options) {
  Alone alone(options);
  PeerBatches batches(options.data, options.model, options.meter.task);
  Measure(options.meter, [&](bool want_loss) {
    const torch::Tensor loss = alone.Loss(batches.Next());
    alone.Update(loss);
    return want_loss ? loss.item<double>() : 0;
  });
}

// Computes the reference for the losses of several workers in one process: their minibatches in turn, one update each;
// or, if `in_step`, an update from the mean of one minibatch of each. The losses of a step are listed together.
void WorkAsReference(const Options& options, bool in_step) {
  Alone alone(options);
  std::vector<PeerBatches> rings;
  for (int i = 0; i < options.meter.workers; ++i) rings.emplace_back(options.data, options.model, i);
  std::vector<double> losses;
  for (int64_t step = 0; step < options.meter.steps; ++step) {
    torch::Tensor sum = torch::zeros({});
    for (PeerBatches& ring : rings) {
      const torch::Tensor loss = alone.Loss(ring.Next());
      losses.push_back(loss.item<double>());
      if (in_step) {
        sum = sum + loss;
      } else {
        alone.Update(loss);
      }
    }
    if (in_step) alone.Update(sum / static_cast<double>(rings.size()));
  }
  std::ofstream(options.meter.folder + "/result.0.json") << nlohmann::json({{"losses", losses}}) << "\n";
}

Trainer MakeTrainer(Replica& replica, const Way& way, const OptimizerSpec& optimizer, uint32_t workers) {
  if (!way.ps) return AllReduce(replica, optimizer);
  if (way.kind != "synchronous") return Asynchronous(replica, optimizer);
  return Synchronous(replica, optimizer, {.replicas_to_aggregate = workers, .total_replicas = workers});
}

void WorkInCluster(const TaskConfig& task, const Way& way, const Options& options) {
  const PeerModel model = MakePeerModel(options.model, false);
  LoadInitialValues(*model.module, options.data, options.model);
  PeerBatches batches(options.data, options.model, options.meter.task);
  Server server(task, {.apply = way.apply, .transport = way.transport});
  Replica replica(server, model.module);
  const OptimizerSpec optimizer = Sgd({.learning_rate = LearningRateOf(options.data, options.model)});
  Trainer trainer = MakeTrainer(replica, way, optimizer, static_cast<uint32_t>(options.meter.workers));
  MonitoredTrainingSession session(server, {.log_step_count_steps = 0});
  MeterOptions meter = options.meter;
  meter.in_step = way.kind == "synchronous";
  Measure(meter, [&](bool want_loss) {
    double loss = 0;
    session.Run(trainer, [&] {
      const torch::Tensor value = model.Loss(batches.Next());
      if (want_loss) loss = value.item<double>();
      return value;
    });
    return loss;
  });
}

// Runs `push_pull` without torch, whose autograd would have to make the gradients.
void MoveBuffer(const TaskConfig& task, const Way& way, const Options& options) {
  auto node = Node::Create(task, {.apply = way.apply, .transport = way.transport});
  ThrowIfError(node.status());
  BufferSource source;
  auto placement = PlaceVariables(source.variables(), (*node)->num_ps(), Placement::kRoundRobin, {});
  ThrowIfError(placement.status());
  AsynchronousAlgorithm algorithm(source, *std::move(placement), Sgd({.learning_rate = kBufferLearningRate}));
  (*node)->SetAlgorithm(&algorithm);
  auto environment = (*node)->MakeSessionEnvironment();
  ThrowIfError(environment.status());
  Session session(*std::move(environment), {.log_step_count_steps = 0}, {});
  ThrowIfError(session.Start());
  Measure(options.meter, [&](bool) {
    ThrowIfError(session.Run());
    return source.first();
  });
  ThrowIfError(session.Close());
}

// Computes what the buffer's first element must be after each step.
void CountAsReference(const Options& options) {
  std::vector<double> values;
  for (int64_t step = 1; step <= options.meter.steps; ++step)
    values.push_back(-static_cast<double>(step) * kBufferLearningRate);
  std::ofstream(options.meter.folder + "/result.0.json") << nlohmann::json({{"losses", values}}) << "\n";
}

int PrintWays() {
  nlohmann::ordered_json ways = nlohmann::json::array();
  for (const Way& way : Ways()) ways.push_back({{"name", way.name}, {"kind", way.kind}, {"ps", way.ps}});
  std::printf("%s\n", ways.dump().c_str());
  return 0;
}

int Work(const TaskConfig& task, const Options& options) {
  const auto way =
      std::find_if(Ways().begin(), Ways().end(), [&](const Way& known) { return known.name == options.way; });
  if (way == Ways().end()) {
    std::fprintf(stderr, "peers_muster: there is no way '%s'; --ways lists them\n", options.way.c_str());
    return 2;
  }
  torch::set_num_threads(1);
  const bool moves_buffer = options.model == "push_pull";
  if (way->kind == "reference" && moves_buffer) {
    CountAsReference(options);
  } else if (moves_buffer) {
    MoveBuffer(task, *way, options);
  } else if (way->kind == "reference") {
    WorkAsReference(options, way->name == "in_step");
  } else if (way->kind == "alone") {
    WorkAlone(options);
  } else {
    WorkInCluster(task, *way, options);
  }
  return 0;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  const auto task = muster::TaskConfig::FromCommandLine(argc, argv);
  muster::bench::Options options;
  bool ways = false, write = false;
  CLI::App app("This project's training processes of `bench peers`.", "peers_muster");
  app.add_flag("--ways", ways, "prints what it can do");
  app.add_flag("--write", write, "writes initial values and minibatches");
  app.add_option("--way", options.way);
  app.add_option("--data", options.data);
  app.add_option("--model", options.model, "mlp100, mlp2048, conv, embedding or push_pull");
  app.add_option("--folder", options.meter.folder, "folder of this run only");
  app.add_option("--task", options.meter.task);
  app.add_option("--workers", options.meter.workers);
  app.add_option("--seconds", options.meter.seconds);
  app.add_option("--steps", options.meter.steps, "number of steps, with the loss of each");
  CLI11_PARSE(app, argc, argv);
  if (ways) return muster::bench::PrintWays();
  if (write) return muster::bench::WritePeerData(options.data, options.model), 0;
  return muster::bench::Work(task, options);
}
