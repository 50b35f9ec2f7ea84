// Any bytes as a safetensors file: opening fails with a Status or gives tensors that lie within the file.
#include <cstdint>
#include <string>

#include "muster/base/check.h"
#include "muster/base/files/memory_file_system.h"
#include "muster/checkpoint/safetensors_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  muster::MemoryFileSystem files;
  MUSTER_CHECK(files.WriteFile("a", std::string(reinterpret_cast<const char*>(data), size)).ok());
  const auto reader = muster::TensorFileReader::Open(files, "a");
  if (!reader.ok()) return 0;
  for (const muster::TensorInfo& tensor : (*reader)->tensors()) {
    MUSTER_CHECK(tensor.offset <= size && tensor.bytes <= size - tensor.offset);
    std::string bytes(tensor.bytes, '\0');
    MUSTER_CHECK((*reader)->Read(tensor.name, muster::AsMutableBytes(bytes.data(), bytes.size())).ok());
  }
  return 0;
}
