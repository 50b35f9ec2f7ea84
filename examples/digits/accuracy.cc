#include "examples/digits/accuracy.h"

#include <cstdio>

#include "absl/strings/str_format.h"

double Accuracy(const torch::Tensor& guesses, const torch::Tensor& labels) {
  const double right = guesses.argmax(1).eq(labels.to(guesses.device())).sum().item<double>();
  return right / static_cast<double>(labels.size(0));
}

double Accuracy(Net& net, const Examples& examples) {
  torch::NoGradGuard no_grad;
  net->eval();
  const double accuracy = Accuracy(net->forward(examples.images.to(net->output->weight.device())), examples.labels);
  net->train();
  return accuracy;
}

void PrintTestAccuracy(double accuracy, int64_t steps) {
  absl::PrintF("Test accuracy %.3f after %d %s\n", accuracy, steps, steps == 1 ? "step" : "steps");
  std::fflush(stdout);
}

void PrintTestAccuracy(Net& net, const muster::ImageData& data, int64_t steps) {
  PrintTestAccuracy(Accuracy(net, AllOf(data.split.test, data)), steps);
}
