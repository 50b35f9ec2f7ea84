// Hogwild: every worker computes a gradient from the shared values and applies it to them, one update per minibatch. No
// worker waits for another, and nothing is locked as a whole. Workers on the host of the ps do this in its memory.
#include "examples/digits/accuracy.h"
#include "examples/digits/example_flags.h"
#include "examples/digits/input.h"
#include "examples/digits/net.h"
#include "muster/muster.h"

int main(int argc, char** argv) {
  // Takes this process's task and the algorithm from the flags; the remaining flags are this program's own.
  const auto task = muster::TaskConfig::FromCommandLine(argc, argv);
  const auto choice = muster::AlgorithmChoice::FromCommandLine(
      argc, argv, {.name = "hogwild", .parameters = {{"server_rule", "sgd:learning_rate=0.05"}}});
  const ExampleFlags flags = ParseExampleFlags(argc, argv, {.steps = 2000, .description = ByAlgorithm("hogwild")});

  // Anything beyond plain Hogwild may need the ps to apply updates; then it is decided automatically.
  const bool in_place =
      choice.name == "hogwild" && !choice.deterministic && !choice.parameters.contains("compensation");
  muster::Server server(task,
                        {.apply = in_place ? muster::ApplyChoice::kDirect : muster::ApplyChoice::kAuto, .threads = 1});
  if (task.is_ps()) return server.Join();  // serves until training has ended

  // The model, with the same initial weights everywhere, and this worker's share of the data.
  const muster::ImageData data = LoadImages(flags.data_dir, flags.csv);
  muster::SeedTorch(flags.seed);
  Net net(data.height, data.width, data.classes);
  muster::Replica replica(server, net);
  muster::Trainer trainer = muster::MakeTrainer(replica, choice);
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
