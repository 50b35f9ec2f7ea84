// A way for a worker's updates to get into the variables, for tests of what must hold on every way: exactly once,
// deadlines, authentication, clean ends. A way is which process applies an update, through which transport it goes, and
// when it leaves. Value-parameterised tests take one of the lists; a test that makes no sense for a way leaves it out
// by name, with the reason beside it.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <string>
#include <vector>

#include "muster/store/model/apply_choice.h"
#include "muster/transport/choice/transport_choice.h"

namespace muster {

// When an update leaves its worker.
enum class Sending : uint8_t {
  kWhole,      // in one message, when all of it is computed
  kInParts,    // stripe by stripe, while others are computed
  kPipelined,  // stripe by stripe, while the next minibatch is computed
};

struct UpdateWay {
  const char* name = "";
  ApplyChoice apply = ApplyChoice::kServer;
  // For real connections; a simulated world has none.
  TransportChoice transport = TransportChoice::kAuto;
  Sending sending = Sending::kWhole;

  bool direct() const { return apply == ApplyChoice::kDirect; }
  bool pipelined() const { return sending == Sending::kPipelined; }
  // StoreClientOptions::part_bytes: one part per stripe, or no parts.
  size_t part_bytes() const { return sending == Sending::kWhole ? 0 : 1; }
};

inline void PrintTo(const UpdateWay& way, std::ostream* out) { *out << way.name; }

// A worker that applies its own updates sends nothing, so it has neither a transport nor parts.
inline constexpr UpdateWay kDirectly = {.name = "Direct", .apply = ApplyChoice::kDirect};

// Ways between processes, or threads with sockets between them.
inline const std::vector<UpdateWay> kWays = {
    kDirectly,
    {.name = "SharedMemory"},
    {.name = "Tcp", .transport = TransportChoice::kTcp},
    {.name = "SharedMemoryInParts", .sending = Sending::kInParts},
    {.name = "SharedMemoryPipelined", .sending = Sending::kPipelined},
    {.name = "TcpInParts", .transport = TransportChoice::kTcp, .sending = Sending::kInParts},
    {.name = "TcpPipelined", .transport = TransportChoice::kTcp, .sending = Sending::kPipelined},
};

// The same, for what doesn't depend on when an update leaves.
inline const std::vector<UpdateWay> kWholeWays = {kWays[0], kWays[1], kWays[2]};

// Ways on one simulated loop, where messages are handed over directly.
inline const std::vector<UpdateWay> kSimulatedWays = {
    kDirectly,
    {.name = "Server"},
    {.name = "ServerInParts", .sending = Sending::kInParts},
    {.name = "ServerPipelined", .sending = Sending::kPipelined},
};

// The same, without an algorithm and so without pipelining.
inline const std::vector<UpdateWay> kStoreWays(kSimulatedWays.begin(), kSimulatedWays.begin() + 3);

inline std::vector<UpdateWay> Without(const std::vector<UpdateWay>& ways, std::initializer_list<const char*> names) {
  std::vector<UpdateWay> rest;
  for (const UpdateWay& way : ways) {
    bool left_out = false;
    for (const char* name : names) left_out = left_out || std::string(name) == way.name;
    if (!left_out) rest.push_back(way);
  }
  return rest;
}

inline std::string NameOfWay(const ::testing::TestParamInfo<UpdateWay>& info) { return info.param.name; }

}  // namespace muster
