// The version of muster in handshakes, checkpoints and `muster --version`. CMakeLists.txt reads it from here, and
// tools/check_docs.py compares the changelog with it.
#pragma once

namespace muster {

inline constexpr char kMusterVersion[] = "0.2.0";

}  // namespace muster
