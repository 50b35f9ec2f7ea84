// DOWNPOUR SGD: a worker takes five Adagrad steps of its own and sends the sum of the five gradients to the ps, which
// apply it with their own Adagrad; the worker goes on from the values that come back.
#include "examples/digits/accuracy.h"
#include "examples/digits/example_flags.h"
#include "examples/digits/input.h"
#include "examples/digits/net.h"
#include "muster/muster.h"

int main(int argc, char** argv) {
  // [choice]
  // Takes this process's task and the algorithm from the flags; the remaining flags are this program's own.
  const auto task = muster::TaskConfig::FromCommandLine(argc, argv);
  const auto choice =
      muster::AlgorithmChoice::FromCommandLine(argc, argv,
                                               {.name = "downpour",
                                                .parameters = {{"window", "5"},
                                                               {"worker_rule", "adagrad:learning_rate=0.01"},
                                                               {"server_rule", "adagrad:learning_rate=0.01"}}});
  const ExampleFlags flags =  // a step is a commit of five minibatches
      ParseExampleFlags(argc, argv, {.steps = 500, .description = ByAlgorithm("downpour")});
  // [/choice]

  muster::Server server(task, {.threads = 1});
  if (task.is_ps()) return server.Join();  // serves until training has ended

  // The model, with the same initial weights everywhere, and this worker's share of the data.
  const muster::ImageData data = LoadImages(flags.data_dir, flags.csv);
  muster::SeedTorch(flags.seed);
  Net net(data.height, data.width, data.classes);
  muster::Replica replica(server, net);
  // [trainer]
  muster::Trainer trainer = muster::MakeTrainer(replica, choice);
  // [/trainer]
  Input input(data, flags.batch_size, flags.seed, task.global_id(), task.num_workers());

  muster::MonitoredTrainingSession session(
      server, {.checkpoint_dir = task.model_dir()},
      {muster::StopAtStep({.last_step = flags.steps}), muster::LoggingTensor(), muster::NanTensor()});
  while (!session.ShouldStop()) {
    session.Run(trainer, [&] {
      const Examples batch = input.Next();
      return torch::nn::functional::cross_entropy(net->forward(batch.images.to(replica.device())),
                                                  batch.labels.to(replica.device()));
    });
  }
  session.Close();  // commits the last window and pulls the global values into the net
  if (session.is_chief()) PrintTestAccuracy(net, data, session.global_step());
}
