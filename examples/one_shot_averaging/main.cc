// One-shot averaging: every worker trains alone on its share of the data, and at the end the mean of all their models
// is the result. They communicate once, through a queue on the ps. The mean is a sensible model because all begin with
// the same weights.
#include "examples/digits/accuracy.h"
#include "examples/digits/example_flags.h"
#include "examples/digits/input.h"
#include "examples/digits/net.h"
#include "muster/muster.h"

int main(int argc, char** argv) {
  const auto task = muster::TaskConfig::FromCommandLine(argc, argv);
  const ExampleFlags flags = ParseExampleFlags(
      argc, argv,
      {.steps = 800,
       .description = "Trains networks on handwritten digits by one-shot averaging:\neach worker alone, "
                      "and the chief averages their weights at the end."},
      TakenBefore::kTask);

  muster::Server server(task, {.threads = 1});
  if (task.is_ps()) return server.Join();  // serves until training has ended

  // The model is this worker's own until the worker asks for the global values or pushes what it has learned.
  const muster::ImageData data = LoadImages(flags.data_dir, flags.csv);
  muster::SeedTorch(flags.seed);
  Net net(data.height, data.width, data.classes);
  muster::Replica replica(server, net);
  muster::LocalVariables local(replica, {.rule = muster::PlainAdd()});
  torch::optim::SGD optimizer(net->parameters(), /*lr=*/0.05);
  Input input(data, flags.batch_size, flags.seed, task.global_id(), task.num_workers());

  // The only push comes at the end, so there are no global steps to count before.
  muster::MonitoredTrainingSession session(server, {.checkpoint_dir = task.model_dir(), .log_step_count_steps = 0},
                                           {muster::LoggingTensor({.tensors = {"loss"}}), muster::NanTensor()});
  for (int64_t step = 0; step < flags.steps && !session.ShouldStop(); ++step) {
    session.Run(local, [&] {
      if (step == 0) local.PullGlobal();  // the chief's initial values
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

  // A model is one element of the queue, with one tensor per parameter.
  const auto workers = static_cast<uint32_t>(task.num_workers());
  const std::vector<torch::Tensor> parameters = net->parameters();
  muster::QueueOptions options{.capacity = workers};
  for (const torch::Tensor& parameter : parameters)
    options.components.push_back(muster::QueueTensor(torch::kFloat32, parameter.sizes().vec()));
  muster::SharedQueue models = server.OpenQueue("models", options);
  models.Enqueue(parameters);
  if (!session.is_chief()) return 0;

  session.Run(local, [&] {
    torch::NoGradGuard no_grad;
    const std::vector<torch::Tensor> all = models.DequeueMany(workers);  // each parameter as [workers, …]
    for (size_t i = 0; i < parameters.size(); ++i) parameters[i].copy_(all[i].mean(0));
    local.PushDelta({.minibatches = workers * static_cast<uint32_t>(flags.steps)});  // now the ps have the mean, too
    const Examples test = AllOf(data.split.test, data);
    return torch::nn::functional::cross_entropy(net->forward(test.images.to(replica.device())),
                                                test.labels.to(replica.device()));
  });
  session.Close();
  PrintTestAccuracy(net, data, flags.steps);
}
