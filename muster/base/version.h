// The version of muster, as messages, handshakes and checkpoints say it. CMakeLists.txt has the same number.
#pragma once

namespace muster {

inline constexpr char kMusterVersion[] = "0.1.0";

}  // namespace muster
