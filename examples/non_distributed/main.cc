// One process and plain libtorch: no cluster, no session, nothing of muster but the reading of the data.
// distributed_setup is the same program for several processes; docs/tutorial/from_one_process.md shows line by line
// what it adds.
// [program]
#include <iostream>

#include "examples/digits/accuracy.h"
#include "examples/digits/example_flags.h"
#include "examples/digits/input.h"
#include "examples/digits/net.h"

int main(int argc, char** argv) {
  const ExampleFlags flags = ParseExampleFlags(argc, argv, {.steps = 1500}, TakenBefore::kNothing);

  at::set_num_threads(1);

  const auto data = LoadImages(flags.data_dir, flags.csv);
  torch::manual_seed(flags.seed);
  Net net(data.height, data.width, data.classes);
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(0.001));
  Input input(data, flags.batch_size, flags.seed, /*worker=*/0, /*workers=*/1);

  for (int64_t step = 1; step <= flags.steps; ++step) {
    const Examples batch = input.Next();
    const auto loss = torch::nn::functional::cross_entropy(net->forward(batch.images), batch.labels);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    if (step % 100 == 1) std::cout << "loss = " << loss.item<double>() << ", step = " << step << "\n" << std::flush;
  }
  PrintTestAccuracy(net, data, flags.steps);
}
// [/program]
