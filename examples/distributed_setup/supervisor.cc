// The smallest cluster, one ps and one worker, trained in the session of a Supervisor: the loop is the program's own,
// and there are no hooks. main.cc does the same in a MonitoredTrainingSession.
#include <iostream>

#include "examples/digits/accuracy.h"
#include "examples/digits/example_flags.h"
#include "examples/digits/input.h"
#include "examples/digits/net.h"
#include "muster/muster.h"

int main(int argc, char** argv) {
  // Takes this process's task and the algorithm from the flags; the remaining flags are this program's own.
  const auto task = muster::TaskConfig::FromCommandLine(argc, argv);
  const auto choice = muster::AlgorithmChoice::FromCommandLine(
      argc, argv, {.name = "hogwild", .parameters = {{"server_rule", "adam:learning_rate=0.001"}}});
  const ExampleFlags flags = ParseExampleFlags(argc, argv, {.steps = 1500, .description = ByAlgorithm("hogwild")});

  muster::Server server(task, {.threads = 1});
  if (task.is_ps()) return server.Join();  // serves until training has ended

  // The model, with the same initial weights everywhere, and this worker's share of the data.
  const muster::ImageData data = LoadImages(flags.data_dir, flags.csv);
  muster::SeedTorch(flags.seed);
  Net net(data.height, data.width, data.classes);
  muster::Replica replica(server, net);
  muster::Trainer trainer = muster::MakeTrainer(replica, choice);
  Input input(data, flags.batch_size, flags.seed, task.global_id(), task.num_workers());

  // With --model_dir the chief saves there every ten minutes, on a thread of the Supervisor.
  muster::TorchSupervisor supervisor(server, {.logdir = task.model_dir()});
  muster::StepResult last;
  supervisor.ManagedSession([&](muster::TorchSupervisor& session) {
    while (!session.ShouldStop() && last.global_step < flags.steps) {
      last = session.Run(trainer, [&] {
        const Examples batch = input.Next();
        return torch::nn::functional::cross_entropy(net->forward(batch.images.to(replica.device())),
                                                    batch.labels.to(replica.device()));
      });
      if (last.global_step % 100 == 0)
        std::cout << "loss = " << last.loss << ", step = " << last.global_step << "\n" << std::flush;
    }
  });
  if (task.is_chief()) PrintTestAccuracy(net, data, last.global_step);
}
