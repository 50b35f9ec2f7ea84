// One process, no cluster: the model, its optimizer and the session are in the program itself. The other examples build
// on this; distributed_setup is the same program with one line more, for the ps.
#include "examples/digits/accuracy.h"
#include "examples/digits/example_flags.h"
#include "examples/digits/input.h"
#include "examples/digits/net.h"
#include "muster/muster.h"

int main(int argc, char** argv) {
  // Without a cluster in flags or TF_CONFIG this process trains alone; the remaining flags are this program's own.
  const auto task = muster::TaskConfig::FromCommandLine(argc, argv);
  const auto choice = muster::AlgorithmChoice::FromCommandLine(
      argc, argv, {.name = "hogwild", .parameters = {{"server_rule", "adam:learning_rate=0.001"}}});
  const ExampleFlags flags = ParseExampleFlags(argc, argv, {.steps = 1500});

  muster::Server server(task, {.threads = 1});

  const muster::ImageData data = LoadImages(flags.data_dir, flags.csv);
  muster::SeedTorch(flags.seed);
  Net net(data.height, data.width, data.classes);
  muster::Replica replica(server, net);
  muster::Trainer trainer = muster::MakeTrainer(replica, choice);
  Input input(data, flags.batch_size, flags.seed, /*worker=*/0, /*workers=*/1);

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
  PrintTestAccuracy(net, data, session.global_step());
}
