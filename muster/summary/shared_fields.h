// Field numbers that more than one message of an event file needs: those of TensorShapeProto (tensor_shape.proto), and
// of an entry of any map.
#pragma once

#include <protozero/types.hpp>

namespace muster {

constexpr protozero::pbf_tag_type kShapeDim = 2;
constexpr protozero::pbf_tag_type kDimSize = 1;
constexpr protozero::pbf_tag_type kEntryKey = 1;
constexpr protozero::pbf_tag_type kEntryValue = 2;

}  // namespace muster
