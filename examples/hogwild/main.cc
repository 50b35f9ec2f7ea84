// Hogwild: every worker computes a gradient from the shared values and applies it there, an update a minibatch;
// nobody waits for anybody and nothing is locked as a whole. Workers on the host of the ps do it in its memory.
#include "examples/digits/accuracy.h"
#include "examples/digits/example_flags.h"
#include "examples/digits/input.h"
#include "examples/digits/net.h"
#include "muster/muster.h"

int main(int argc, char** argv) {
  // Who this process is, and how the workers' updates are combined; the flags that are left are this program's.
  const auto task = muster::TaskConfig::FromCommandLine(argc, argv);
  const auto choice = muster::AlgorithmChoice::FromCommandLine(
      argc, argv, {.name = "hogwild", .parameters = {{"server_rule", "sgd:learning_rate=0.05"}}});
  const ExampleFlags flags = ParseExampleFlags(argc, argv, {.steps = 2000});

  // What is more than plain Hogwild may need the ps to apply it: that decides by itself.
  const bool in_place =
      choice.name == "hogwild" && !choice.deterministic && !choice.parameters.contains("compensation");
  muster::Server server(task,
                        {.apply = in_place ? muster::ApplyChoice::kDirect : muster::ApplyChoice::kAuto, .threads = 1});
  if (task.is_ps()) return server.Join();  // until training has ended

  // The model, which begins alike everywhere, and this worker's share of the data.
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
  session.Close();  // the last window is committed, and the net has the global values
  if (session.is_chief()) PrintTestAccuracy(net, data, session.global_step());
}
