// What a task runs to prove that the port of its address is its own.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/built_at.h"

namespace muster {

// Returns the script of a worker in a cluster without ps: it listens at its address, as a server that sets
// SO_REUSEADDR, and connects to itself; only then it ends, and says "it was mine".
inline std::string ScriptThatProvesItsPort() {
  const std::string reach = absl::StrCat(BinFolder(), "/muster reach");
  return absl::StrCat(
      "index=${TF_CONFIG##*\\\"index\\\":}; index=${index%%[,\\}]*}; list=${TF_CONFIG#*[}; list=${list%%]*}; "
      "set -- $(echo \"$list\" | tr -d '\" ' | tr ',' ' '); shift $index; ",
      reach, " --listen $1 >/dev/null & server=$!; until ", reach,
      " --dial $1 >/dev/null; do kill -0 $server || exit 1; done; kill $server; wait $server; "
      "[ $? = 143 ] && echo it was mine");
}

}  // namespace muster
