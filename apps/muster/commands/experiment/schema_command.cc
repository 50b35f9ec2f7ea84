// `muster schema`: the keys of muster.yml, as JSON schema.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "apps/muster/commands/command_table.h"
#include "muster/launch/spec/schema.h"

namespace muster {
namespace {

constexpr char kSchemaDescription[] = "Print what muster.yml may say, as JSON schema";

constexpr char kSchemaFooter[] = R"(
Examples:
  muster schema > muster.schema.json
  muster schema | jq '."$defs".train.properties | keys'

An editor that knows YAML schemas completes and checks muster.yml by it; its first line then is
  # yaml-language-server: $schema=muster.schema.json

`muster train` checks more than a schema can say, such as which section goes with which framework.)";

}  // namespace

void AddSchemaCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("schema", kSchemaDescription);
  command->add_flag("--json")->description("As JSON, which it is anyway");
  command->footer(kSchemaFooter);
  command->callback([&exit_code] {
    std::fputs(ExperimentFileJsonSchema().c_str(), stdout);  // what fails is found when all is written out
    exit_code = 0;
  });
}

}  // namespace muster
