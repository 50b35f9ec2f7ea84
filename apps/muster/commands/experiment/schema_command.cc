// `muster schema`: the keys of muster.yml, as JSON schema.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "apps/muster/commands/command_table.h"
#include "muster/launch/spec/schema.h"

namespace muster {
namespace {

constexpr char kSchemaDescription[] = "Print the keys of muster.yml as JSON schema";

constexpr char kSchemaFooter[] = R"(
Examples:
  muster schema > muster.schema.json
  muster schema | jq '."$defs".train.properties | keys'

An editor that knows YAML schemas can complete and check muster.yml with it, if the first line of muster.yml is
  # yaml-language-server: $schema=muster.schema.json

`muster train` checks more than a schema can express, such as which section belongs to which framework.)";

}  // namespace

void AddSchemaCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("schema", kSchemaDescription);
  command->add_flag("--json")->description("Print JSON, which is the default");
  command->footer(kSchemaFooter);
  command->callback([&exit_code] {
    std::fputs(ExperimentFileJsonSchema().c_str(), stdout);  // main reports a failed write when it flushes
    exit_code = 0;
  });
}

}  // namespace muster
