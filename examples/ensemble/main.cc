// An ensemble: every worker trains its own model, from its own weights, on all the data in its own order. The workers
// don't communicate until the end, when each sends its model's predictions to the chief through a queue; the mean of
// these probabilities is the ensemble's prediction.
#include <cstdio>

#include "absl/strings/str_format.h"
#include "examples/digits/accuracy.h"
#include "examples/digits/example_flags.h"
#include "examples/digits/input.h"
#include "examples/digits/net.h"
#include "muster/muster.h"

int main(int argc, char** argv) {
  const auto task = muster::TaskConfig::FromCommandLine(argc, argv);
  const ExampleFlags flags = ParseExampleFlags(
      argc, argv,
      {.steps = 600,
       .description = "Trains an ensemble of networks on handwritten digits:\neach worker alone, and the "
                      "chief averages their answers at the end."},
      TakenBefore::kTask);

  muster::Server server(task, {.threads = 1});
  if (task.is_ps()) return server.Join();  // serves until training has ended

  // The models end with their workers, and the ps hold none.
  if (task.is_chief() && !task.model_dir().empty())
    std::fprintf(stderr, "ensemble: nothing will be written to --model_dir %s: only the accuracy is printed\n",
                 task.model_dir().c_str());

  // The variables are this worker's own: nothing is pushed or pulled.
  const muster::ImageData data = LoadImages(flags.data_dir, flags.csv);
  const uint64_t seed = flags.seed + static_cast<uint64_t>(task.global_id());
  muster::SeedTorch(seed);
  Net net(data.height, data.width, data.classes);
  muster::Replica replica(server, net);
  muster::LocalVariables local(replica);
  torch::optim::Adam optimizer(net->parameters(), /*lr=*/0.001);
  Input input(data, flags.batch_size, seed, /*worker=*/0, /*workers=*/1);

  // Without pushes there are no global steps to count.
  muster::MonitoredTrainingSession session(server, {.log_step_count_steps = 0},
                                           {muster::LoggingTensor({.tensors = {"loss"}}), muster::NanTensor()});
  for (int64_t step = 0; step < flags.steps && !session.ShouldStop(); ++step) {
    session.Run(local, [&] {
      const Examples batch = input.Next();
      optimizer.zero_grad();
      const auto loss = torch::nn::functional::cross_entropy(net->forward(batch.images.to(replica.device())),
                                                             batch.labels.to(replica.device()));
      loss.backward();
      optimizer.step();
      return loss;
    });
  }
  if (session.ShouldStop()) return 0;  // interrupted

  torch::NoGradGuard no_grad;
  const Examples test = AllOf(data.split.test, data);
  const torch::Tensor probabilities = net->forward(test.images.to(replica.device())).softmax(1);
  const auto workers = static_cast<uint32_t>(task.num_workers());
  muster::SharedQueue predictions = server.OpenQueue(
      "predictions",
      {.capacity = workers, .components = {muster::QueueTensor(torch::kFloat32, probabilities.sizes().vec())}});
  predictions.Enqueue({probabilities});
  if (!session.is_chief()) return 0;

  const torch::Tensor all = predictions.DequeueMany(workers)[0];  // [workers, images, classes]
  for (uint32_t i = 0; i < workers; ++i)
    absl::PrintF("One model alone: %.3f\n", Accuracy(all[static_cast<int64_t>(i)], test.labels));
  PrintTestAccuracy(Accuracy(all.mean(0), test.labels), flags.steps);
}
