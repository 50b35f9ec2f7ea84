#include "bench/support/processor.h"

#include <fstream>

namespace muster::bench {

Processor ThisProcessor() {
  Processor processor;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    const std::string value = colon == std::string::npos ? "" : line.substr(colon + 2);
    if (line.rfind("processor", 0) == 0) ++processor.cores;
    if (line.rfind("model name", 0) == 0) processor.name = value;
    if (line.rfind("vendor_id", 0) == 0) processor.is_intel = value == "GenuineIntel";
  }
  return processor;
}

}  // namespace muster::bench
