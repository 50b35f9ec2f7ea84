// Where each setting of an experiment comes from, for `muster train --dry-run`: a flag, the environment, a line of the
// experiment file, or a default. Pure, thread-safe.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "muster/launch/registry/registry.h"
#include "muster/launch/spec/experiment_file.h"

namespace muster {

// Which setting counts where it is given in several places.
inline constexpr char kPrecedence[] =
    "a flag wins over the environment, the environment over the file, the file over "
    "the default";

// What was given beside the file.
struct GivenValues {
  SubmitOptions options;
  bool stop_grace = false;                        // --stop-grace was given
  std::map<std::string, std::string> hosts = {};  // flags for hosts, by the file's key (GivenHostFlags)
  std::vector<std::string> of_job = {};           // "NAME=VALUE" of --slurm, --ray, --spark or --kubernetes
  std::string code_limit = {};                    // of --code_limit
  std::vector<std::string> parameters;            // of --param: "NAME=VALUE"
  std::vector<std::string> environment;           // "NAME=VALUE"
};

// Returns a table: the name, the value, the source ("--param, not muster.yml:4"). Shows no values of `env` and no
// token, which may be secrets.
std::string ValueSourcesText(const ExperimentFile& file, const GivenValues& given);

}  // namespace muster
