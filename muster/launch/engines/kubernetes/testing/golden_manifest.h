// For tests: what a manifest is.
#pragma once

namespace muster {

inline constexpr char kGoldenManifest[] = R"yaml()yaml";

}  // namespace muster
