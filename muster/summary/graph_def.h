// A model's structure for TensorBoard's graph tab: nodes whose names are paths ("net/conv1/weight"), drawn as nested
// boxes. Encoded as TensorFlow's GraphDef (core/framework/graph.proto, node_def.proto). Thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace muster {

struct GraphNode {
  std::string name;                                             // with slashes
  std::string op;                                               // the kind of node: "Linear", "Parameter"
  std::vector<std::string> inputs;                              // names of other nodes
  std::optional<std::vector<int64_t>> shape;                    // of its output; also shown on the edges
  std::vector<std::pair<std::string, std::string>> attributes;  // further ones, shown for a selected node
};

// Returns the bytes of a GraphDef, for EventFileWriter::AddGraph.
std::string EncodeGraph(std::span<const GraphNode> nodes);

}  // namespace muster
