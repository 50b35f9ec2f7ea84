// The version of muster in messages, handshakes and checkpoints. CMakeLists.txt has the same number.
#pragma once

namespace muster {

inline constexpr char kMusterVersion[] = "0.1.0";

}  // namespace muster
