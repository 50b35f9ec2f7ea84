// Every kind of summary, in a program that learns which of two stripes a picture has: `summaries --model_dir=DIR`, then
// `tensorboard --logdir DIR`. docs/summaries.md shows it; tests/tensorboard_test.py runs it and reads everything back.
#include <muster/muster.h>

namespace summary = muster::summary;

struct NetImpl : torch::nn::Module {
  torch::nn::Sequential layers{register_module(
      "layers", torch::nn::Sequential(torch::nn::Linear(64, 8), torch::nn::ReLU(), torch::nn::Linear(8, 2)))};
};
TORCH_MODULE(Net);

// Grey 8 x 8 pictures, each with a bright row (label 0) or column (label 1).
struct Pictures {
  explicit Pictures(int64_t n) : images(torch::rand({n, 1, 8, 8}) * 0.5), labels(torch::randint(2, {n})) {
    for (int64_t i = 0; i < n; ++i) images[i][0].select(labels[i].item<int64_t>(), i % 8).fill_(1);
  }
  torch::Tensor images, labels;
};

int main(int argc, char** argv) {
  auto task = muster::TaskConfig::FromWholeCommandLine(argc, argv);
  muster::Server server(task);
  if (task.is_ps()) return server.Join();
  torch::manual_seed(1);

  Net net;
  muster::Replica replica(server, net);
  const double learning_rate = 0.05;
  auto trainer = muster::Asynchronous(replica, muster::Adam({.learning_rate = learning_rate}));

  muster::MonitoredTrainingSession session(server, {.checkpoint_dir = task.model_dir(), .save_summaries_steps = 10},
                                           {muster::StopAtStep({.num_steps = 31})});
  while (!session.ShouldStop()) {
    // [step]
    session.Run(trainer, [&] {
      Pictures batch(32);
      auto scores = net->layers->forward(batch.images.flatten(1));
      auto loss = torch::cross_entropy_loss(scores, batch.labels);
      summary::Scalar("loss", loss);
      if (summary::Wanted()) {  // computing them costs time
        auto right = scores.argmax(1).eq(batch.labels);
        summary::Scalar("accuracy", right.to(torch::kFloat).mean());
      }
      summary::Histogram("scores", scores);
      summary::Image("pictures", batch.images, summary::ImageLayout::kNCHW, /*max_outputs=*/2);
      summary::Text("notes", "Stripes: **rows** are 0, *columns* are 1.");
      summary::HParams({{"learning_rate", learning_rate}, {"hidden", 8}, {"optimizer", "adam"}, {"nesterov", false}},
                       {"loss", "accuracy"});
      summary::Graph(*net);
      return loss;
    });
    // [/step]
  }
}
