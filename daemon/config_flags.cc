// SPDX-License-Identifier: Apache-2.0
// The command line, made from the table of settings. The only file of the
// daemon that includes CLI11, which costs many seconds to compile.
#include <CLI/CLI.hpp>
#include <sstream>

#include "daemon/config.h"
#include "daemon/metrics/metrics_server.h"

namespace memtuned {
namespace {

constexpr char kAbout[] =
    "Serves page pools on a machine's NUMA nodes, and their tuning.\n"
    "Every setting is also a key of the file: --sample-interval 2s is\n"
    "'sample-interval: 2s'. Flags win over the file.";

constexpr char kPoolHelp[] =
    "a pool: its size in all, or of each node with /node, as default=1GiB or "
    "big=256GiB/node,policy=fixed. Keys: policy, populate=reserve|lazy, "
    "sections_per_second, mode=0660, any tunable, and attach.users, "
    "attach.groups, observe.users, observe.groups, each once or more. May be "
    "repeated";

constexpr char kRoleHelp[] =
    "who may do what: viewer, operator or admin, and whom it is given to, as "
    "operator,groups=dba,subjects=pools/default. Keys: users, groups, "
    "identities, subjects, each once or more. May be repeated";

void AddSetting(CLI::App& app, const ConfigSetting& setting,
                CommandLine& line) {
  const std::string flag = std::string("--") + setting.key;
  const std::string key = setting.key;
  if (*setting.value == '\0') {
    app.add_flag_callback(
        flag, [&line, key] { line.settings.emplace_back(key, "true"); },
        setting.help);
    return;
  }
  app.add_option_function<std::string>(
         flag,
         [&line, key](const std::string& text) {
           line.settings.emplace_back(key, text);
         },
         setting.help)
      ->type_name(setting.value);
}

}  // namespace

CommandLine ParseCommandLine(int argc, const char* const* argv) {
  CommandLine line;
  CLI::App app(kAbout, "memtuned");
  app.set_version_flag("--version", std::string("memtuned ") + BuildVersion() +
                                        " (" + BuildRevision() + ")");
  app.add_option("--config", line.config_file, "YAML file of settings")
      ->type_name("FILE");
  app.add_option("--pool", line.pools, kPoolHelp)
      ->type_name("NAME=SIZE[,key=value...]")
      ->allow_extra_args(false);
  app.add_option("--role", line.roles, kRoleHelp)
      ->type_name("ROLE,key=value...")
      ->allow_extra_args(false);
  for (const ConfigSetting& setting : ConfigSettings()) {
    AddSetting(app, setting, line);
  }
  app.add_flag("--check", line.check,
               "check the configuration, print the effective values, exit");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    const bool asked = app.exit(error, out, err) == 0;
    line.exit_now = true;
    line.exit_code = asked ? 0 : 2;
    line.exit_text = asked ? out.str() : "memtuned: " + err.str();
  }
  return line;
}

}  // namespace memtuned
