// Which processor a benchmark runs on.
#pragma once

#include <string>

namespace muster::bench {

struct Processor {
  std::string name = "unknown processor";
  int cores = 0;
  bool is_intel = false;  // as libtorch's MKL asks; on others the switch of torch_bridge/mkl_amd matters
};

Processor ThisProcessor();

}  // namespace muster::bench
