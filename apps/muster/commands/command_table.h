// The table of subcommands, one line each, in the order of --help. COMMAND(Name) stands for AddNameCommand, which
// job/name_command.cc or experiment/name_command.cc defines: it adds the subcommand with its flags and help; when that
// is given on the command line, parsing runs it and `exit_code` is its result. Completion is made from what the
// commands add.
#pragma once

namespace CLI {
class App;
}

#define MUSTER_COMMANDS(COMMAND) \
  COMMAND(Init)                  \
  COMMAND(Train)                 \
  COMMAND(Status)                \
  COMMAND(Monitor)               \
  COMMAND(Logs)                  \
  COMMAND(Kill)                  \
  COMMAND(Ls)                    \
  COMMAND(Show)                  \
  COMMAND(Results)               \
  COMMAND(Rerun)                 \
  COMMAND(Tensorboard)           \
  COMMAND(Gc)                    \
  COMMAND(Schema)                \
  COMMAND(Manifest)              \
  COMMAND(Run)                   \
  COMMAND(Ps)                    \
  COMMAND(Cluster)               \
  COMMAND(Place)                 \
  COMMAND(Device)                \
  COMMAND(Checkpoint)            \
  COMMAND(Trace)                 \
  COMMAND(Algorithms)            \
  COMMAND(Completion)            \
  COMMAND(Help)                  \
  COMMAND(Version)               \
  COMMAND(Supervise)             \
  COMMAND(Follow)                \
  COMMAND(Home)                  \
  COMMAND(Agent)                 \
  COMMAND(Reach)                 \
  COMMAND(Receive)               \
  COMMAND(Send)                  \
  COMMAND(Once)                  \
  COMMAND(Sweep)

namespace muster {

#define COMMAND(Name) void Add##Name##Command(CLI::App& app, int& exit_code);
MUSTER_COMMANDS(COMMAND)
#undef COMMAND

inline constexpr void (*kCommands[])(CLI::App& app, int& exit_code) = {
#define COMMAND(Name) Add##Name##Command,
    MUSTER_COMMANDS(COMMAND)
#undef COMMAND
};

}  // namespace muster
