#include "muster/transport/simulated/fault_script.h"

#include <utility>

namespace muster {

FaultScript::FaultScript(std::vector<Fault> faults) {
  for (Fault& fault : faults) Add(std::move(fault));
}

void FaultScript::Add(Fault fault) { entries_.push_back({std::move(fault)}); }

std::optional<Fault> FaultScript::Meet(uint16_t method, const std::string& peer) {
  std::optional<Fault> met;
  for (Entry& entry : entries_) {
    const Fault& fault = entry.fault;
    if (fault.method.value_or(method) != method || (!fault.peer.empty() && fault.peer != peer)) continue;
    ++entry.matched;
    if (!met && entry.matched >= fault.first && entry.matched - fault.first < fault.times) met = fault;
  }
  if (met) ++met_;
  return met;
}

}  // namespace muster
