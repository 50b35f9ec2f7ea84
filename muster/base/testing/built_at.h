// Where the checkout and its programs lie: known to one library of a build (muster_built_at), so that a test's object
// is the same in every checkout and the compiler cache serves them all. Safe to call before main begins. For tests.
#pragma once

#include <string>

namespace muster {

std::string SourceFolder();  // the checkout
std::string BinFolder();     // where this build's programs are

}  // namespace muster
