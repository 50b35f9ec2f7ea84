#include "muster/store/service/elastic_force.h"

#include <cstring>

#include "muster/base/check.h"

namespace muster {
namespace {

template <typename T>
void Pull(ByteSpan value, ByteSpan theta, T alpha, MutableByteSpan into) {
  for (size_t at = 0; at < into.size(); at += sizeof(T)) {
    T centre, worker;
    std::memcpy(&centre, value.data() + at, sizeof(T));
    std::memcpy(&worker, theta.data() + at, sizeof(T));
    // The distance that the centre really moves: it is rounded.
    const T moved = (centre + alpha * (worker - centre)) - centre;
    std::memcpy(into.data() + at, &moved, sizeof(T));
  }
}

}  // namespace

MutableByteSpan ExchangeAnswer(const Arena& arena, int client, int slice) {
  const ArenaLayout::Slice& placed = arena.layout().slices()[slice];
  return {arena.memory().data() + arena.layout().exchange_offset(client, placed.value_offset), placed.bytes};
}

void ElasticForce::Change(const Block& block, MutableByteSpan into) const {
  MUSTER_CHECK(block.dtype == DType::kFloat32 || block.dtype == DType::kFloat64);
  if (block.dtype == DType::kFloat64) {
    Pull<double>(block.value, block.gradient, alpha_, into);
  } else {
    Pull<float>(block.value, block.gradient, static_cast<float>(alpha_), into);
  }
  std::memcpy(answer_.data() + block.offset, into.data(), into.size());
}

}  // namespace muster
