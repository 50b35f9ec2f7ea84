// The model of the digits example: a small convolutional network for square grey images.
#pragma once

#include <torch/torch.h>

struct NetImpl : torch::nn::Module {
  NetImpl(int64_t height, int64_t width, int64_t classes)
      : conv1(register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 16, 3).padding(1)))),
        conv2(register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(16, 32, 3).padding(1)))),
        hidden(register_module("hidden", torch::nn::Linear(32 * (height / 2) * (width / 2), 64))),
        output(register_module("output", torch::nn::Linear(64, classes))) {}

  // [batch, 1, height, width] -> [batch, classes]
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(conv1(x));
    x = torch::max_pool2d(torch::relu(conv2(x)), 2);
    x = torch::relu(hidden(x.flatten(1)));
    return output(x);
  }

  torch::nn::Conv2d conv1, conv2;
  torch::nn::Linear hidden, output;
};
TORCH_MODULE(Net);
