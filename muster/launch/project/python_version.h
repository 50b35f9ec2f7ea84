// Whether the Python of this machine can have the framework's version that a file asks for: known before the build,
// which would fail at pip. Stateless, thread-safe.
#pragma once

#include <compare>
#include <optional>
#include <string>

#include "muster/launch/registry/home.h"
#include "muster/launch/registry/registry.h"
#include "muster/launch/spec/experiment_file.h"

namespace muster {

struct PythonVersion {
  int major = 0;
  int minor = 0;
  auto operator<=>(const PythonVersion&) const = default;
};

// Asks the python3 that `search_path` ("/usr/bin:/bin") finds for its version; it has 5 s. nullopt if there is none, or
// no answer.
std::optional<PythonVersion> PythonOnPath(const std::string& search_path);

// Returns the newest Python for which the package index has this release of TensorFlow or PyTorch; nullopt if it isn't
// known, as for releases later than this table. In doubt it returns the newer one.
std::optional<PythonVersion> NewestPythonFor(Framework framework, const std::string& version);

// Returns why pip can't install the version that the file asks for: "1.2.1 was released for Python 3.6 and older, this
// machine's python3 is 3.11". Returns "" if it can, if that isn't known, if `options` use no virtual environment, or if
// `home` has the environment already.
std::string VersionProblem(const ExperimentFile& file, const SubmitOptions& options, const Home& home,
                           const std::optional<PythonVersion>& python);

}  // namespace muster
