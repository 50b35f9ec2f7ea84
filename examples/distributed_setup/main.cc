// The smallest cluster: one ps holds the model, one worker trains it, in a session that initialises or restores the
// model and ends both processes in order. supervisor.cc does the same in a Supervisor's session.
// [program]
#include "examples/digits/accuracy.h"
#include "examples/digits/example_flags.h"
#include "examples/digits/input.h"
#include "examples/digits/net.h"
#include "muster/muster.h"

int main(int argc, char** argv) {
  const auto task = muster::TaskConfig::FromCommandLine(argc, argv);
  const auto choice = muster::AlgorithmChoice::FromCommandLine(argc, argv, {.name = "hogwild"});
  const ExampleFlags flags = ParseExampleFlags(argc, argv, {.steps = 1500, .description = ByAlgorithm("hogwild")});

  muster::Server server(task, {.threads = 1});
  if (task.is_ps()) return server.Join();  // serves until training has ended

  const auto data = LoadImages(flags.data_dir, flags.csv);
  muster::SeedTorch(flags.seed);
  Net net(data.height, data.width, data.classes);
  muster::Replica replica(server, net);
  auto trainer = muster::MakeTrainer(replica, choice, muster::Adam({.learning_rate = 0.001}));
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
  session.Close();
  if (session.is_chief()) PrintTestAccuracy(net, data, session.global_step());
}
// [/program]
