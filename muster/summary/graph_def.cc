#include "muster/summary/graph_def.h"

#include <protozero/pbf_writer.hpp>

#include "muster/summary/shared_fields.h"

namespace muster {
namespace {

using Tag = protozero::pbf_tag_type;

constexpr Tag kGraphNode = 1;
constexpr Tag kGraphVersions = 4;
constexpr Tag kVersionsProducer = 1;
constexpr Tag kNodeName = 1;
constexpr Tag kNodeOp = 2;
constexpr Tag kNodeInput = 3;
constexpr Tag kNodeAttr = 5;
constexpr Tag kAttrList = 1;
constexpr Tag kAttrString = 2;
constexpr Tag kAttrShape = 7;
constexpr Tag kListShape = 7;
// The value of PyTorch's own writer (torch/utils/tensorboard/_pytorch_graph.py).
constexpr int32_t kProducer = 22;

// Encodes the shape separately: a writer drops an empty message, and a scalar's shape is empty.
void AddShape(protozero::pbf_writer& message, Tag field, const std::vector<int64_t>& shape) {
  std::string dims;
  protozero::pbf_writer encoded(dims);
  for (const int64_t size : shape) {
    protozero::pbf_writer dim(encoded, kShapeDim);
    dim.add_int64(kDimSize, size);
  }
  message.add_message(field, dims);
}

// TensorBoard labels an edge from "_output_shapes", a list with a shape per output.
void AddShapeAttributes(protozero::pbf_writer& node, const std::vector<int64_t>& shape) {
  {
    protozero::pbf_writer entry(node, kNodeAttr);
    entry.add_string(kEntryKey, "shape");
    protozero::pbf_writer value(entry, kEntryValue);
    AddShape(value, kAttrShape, shape);
  }
  protozero::pbf_writer entry(node, kNodeAttr);
  entry.add_string(kEntryKey, "_output_shapes");
  protozero::pbf_writer value(entry, kEntryValue);
  protozero::pbf_writer list(value, kAttrList);
  AddShape(list, kListShape, shape);
}

void AddNode(protozero::pbf_writer& graph, const GraphNode& node) {
  protozero::pbf_writer encoded(graph, kGraphNode);
  encoded.add_string(kNodeName, node.name);
  encoded.add_string(kNodeOp, node.op);
  for (const std::string& input : node.inputs) encoded.add_string(kNodeInput, input);
  if (node.shape) AddShapeAttributes(encoded, *node.shape);
  for (const auto& [key, text] : node.attributes) {
    protozero::pbf_writer entry(encoded, kNodeAttr);
    entry.add_string(kEntryKey, key);
    protozero::pbf_writer value(entry, kEntryValue);
    value.add_string(kAttrString, text);
  }
}

}  // namespace

std::string EncodeGraph(std::span<const GraphNode> nodes) {
  std::string bytes;
  protozero::pbf_writer graph(bytes);
  for (const GraphNode& node : nodes) AddNode(graph, node);
  {
    protozero::pbf_writer versions(graph, kGraphVersions);
    versions.add_int32(kVersionsProducer, kProducer);
  }
  return bytes;
}

}  // namespace muster
