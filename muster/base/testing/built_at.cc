#include "muster/base/testing/built_at.h"

namespace muster {

std::string SourceFolder() { return MUSTER_SOURCE_DIR; }
std::string BinFolder() { return MUSTER_BIN_DIR; }

}  // namespace muster
