// The beginning of a training program: the task's own name, and a tensor.
#include <muster/muster.h>

#include <cstdio>

int main(int argc, char** argv) {
  const auto task = muster::TaskConfig::FromCommandLine(argc, argv);
  std::printf("workers=%d sum=%d\n", task.num_workers(), torch::ones({3}).sum().item<int>());
  return 0;
}
