// Protobuf's encoding in a few plain lines, for tests: the writers' output must equal these bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster {

inline std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(0x80 | (value & 0x7f));
  return bytes + static_cast<char>(value);
}

template <typename T>
std::string RawBytes(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

inline std::string NumberField(int number, uint64_t value) { return Varint(number * 8) + Varint(value); }
inline std::string DoubleField(int number, double value) { return Varint(number * 8 + 1) + RawBytes(value); }
inline std::string FloatField(int number, float value) { return Varint(number * 8 + 5) + RawBytes(value); }
// Encodes strings, bytes, messages and packed numbers.
inline std::string BytesField(int number, const std::string& bytes) {
  return Varint(number * 8 + 2) + Varint(bytes.size()) + bytes;
}
inline std::string PackedDoubles(int number, const std::vector<double>& values) {
  std::string bytes;
  for (const double value : values) bytes += RawBytes(value);
  return BytesField(number, bytes);
}

}  // namespace muster
