// SPDX-License-Identifier: Apache-2.0
// The rows of command_table.h.
#include "client/ctl/command_table.h"

#include <array>

#include "client/ctl/verbs.h"
#include "core/base/topology.h"

namespace memtuned::ctl {
namespace {

constexpr std::array<const char*, 4> kOutputs = {"table", "wide", "json",
                                                 "yaml"};
constexpr std::array<const char*, 3> kColors = {"auto", "always", "never"};
constexpr std::array<const char*, 3> kShells = {"bash", "zsh", "fish"};
constexpr std::array<const char*, 5> kZones = {"DMA", "DMA32", "Normal",
                                               "Movable", "Device"};
constexpr std::array<const char*, 5> kReferences = {
    "commands", "options", "exit-codes", "tunables", "metrics"};

constexpr int kAnyNumber = 1 << 20;

constexpr OptionDef Flag(const char* name, const char* help) {
  return {name, "", "", ValueKind::kFlag, help};
}

constexpr OptionDef Text(const char* name, const char* value,
                         const char* help) {
  return {name, "", value, ValueKind::kText, help};
}

constexpr OptionDef Numbers(const char* name, const char* value, int max,
                            const char* help) {
  return {name, "", value, ValueKind::kNumbers, help, {}, 0, 1.0 * max};
}

constexpr OptionDef Duration(const char* name, double min, double max,
                             const char* help) {
  return {name, "", "TIME", ValueKind::kDuration, help, {}, min, max};
}

// With a letter, as "-o" for "--output".
constexpr OptionDef Short(const char* letter, OptionDef option) {
  option.letter = letter;
  return option;
}

constexpr OptionDef kNode =
    Numbers("--node", "N", kMaxNodeNumber,
            "only these nodes: os indexes, as in 0 or 0,2-3");
constexpr OptionDef kCpu =
    Numbers("--cpu", "C", kMaxCpuNumber,
            "only the pagesets of these CPUs, as in 0 or 0,4-7");
constexpr OptionDef kZone = {"--zone",
                             "",
                             "ZONE",
                             ValueKind::kChoices,
                             "only these zones, as in Normal or Normal,Movable",
                             kZones};
constexpr OptionDef kRate =
    Duration("--rate", 0.1, 3600,
             "look twice, this far apart, and show counters per second");
constexpr OptionDef kReason =
    Text("--reason", "TEXT", "why: kept with the change");
constexpr OptionDef kDryRun =
    Flag("--dry-run", "show what would happen, change nothing");
constexpr OptionDef kEtag =
    Text("--etag", "ETAG",
         "refuse if the tunables changed since this etag was read");
constexpr OptionDef kRequestId = Text(
    "--request-id", "ID", "a repeated call with the same id is not done twice");

constexpr std::array<OptionDef, 15> kGlobalOptions = {{
    Short("-t", Text("--target", "ADDR",
                     "the daemon: unix:/PATH, /PATH or, with TLS, HOST:PORT; "
                     "default $MEMTUNED_TARGET, else the current context's, "
                     "else unix:/run/memtuned/memtuned.sock")),
    Text("--targets", "LIST",
         "many daemons at once: addresses with commas between, a file with "
         "one a line, or dns:///NAME:PORT for all of a name's"),
    {"--parallel",
     "",
     "N",
     ValueKind::kNumber,
     "how many of the targets at a time; default 32",
     {},
     1,
     256},
    Flag("--yes", "change several targets without asking"),
    Text("--context", "NAME",
         "take target and TLS files from this context of "
         "~/.config/memtunectl.yaml ($MEMTUNECTL_CONFIG)"),
    Text("--tls-ca", "FILE",
         "TCP: PEM of the CA that daemons' certificates "
         "come from"),
    Text("--tls-certificate", "FILE", "TCP: PEM of your certificate"),
    Text("--tls-key", "FILE", "TCP: PEM of its key"),
    Text("--tls-server-name", "NAME",
         "TCP: the name in the daemon's certificate, if it is not HOST"),
    {"--subject", "-s", "NAME", ValueKind::kSubject,
     "host or pools/NAME; reading verbs default to every subject"},
    {"--output", "-o", "FORMAT", ValueKind::kChoice,
     "table, wide (all columns, never shortened), json (the response in "
     "proto JSON, errors too) or yaml",
     kOutputs},
    Duration("--timeout", 0.001, 86400,
             "deadline of each call, as in 10s or 300ms; default 10s"),
    {"--color", "", "WHEN", ValueKind::kChoice,
     "auto (on a terminal, unless NO_COLOR is set), always or never", kColors},
    Short("-h", Flag("--help", "help on memtunectl or on a verb")),
    Flag("--version", "the client's version; 'version' asks the daemon too"),
}};

constexpr std::array<OptionDef, 2> kZoneFilter = {kNode, kZone};
constexpr std::array<OptionDef, 4> kPagesetOptions = {
    Flag("--cpu", "one row for each CPU instead of each zone (also -o wide)"),
    kNode, kZone, kRate};
constexpr std::array<OptionDef, 1> kProcessOptions = {
    Flag("--nodes",
         "what each holds of each node; makes the daemon look "
         "through the pool, 100 us for 128 MiB")};
constexpr std::array<OptionDef, 1> kStatsOptions = {kRate};
constexpr std::array<OptionDef, 2> kWatchOptions = {
    Duration("--interval", 0.05, 3600,
             "least time between two samples; default 1s"),
    {"--count",
     "-n",
     "N",
     ValueKind::kNumber,
     "stop after this many samples of each subject",
     {},
     1,
     1e9}};
constexpr std::array<OptionDef, 4> kSetOptions = {kReason, kDryRun, kEtag,
                                                  kRequestId};
constexpr std::array<OptionDef, 6> kRecalculateOptions = {
    kReason, kDryRun, kEtag, kRequestId, kNode, kZone};
constexpr std::array<OptionDef, 7> kDrainOptions = {
    kReason, kDryRun, kEtag, kRequestId, kNode, kZone, kCpu};

constexpr std::array<CommandDef, 19> kCommands = {{
    {.name = "topology",
     .subjects = SubjectUse::kAll,
     .help = "Show nodes, their memory, CPUs and distances.",
     .examples = "memtunectl topology\n"
                 "memtunectl --subject pools/default topology -o json",
     .run = &RunTopology},
    {.name = "zones",
     .options = kZoneFilter,
     .subjects = SubjectUse::kAll,
     .help = "Show size, free memory, watermarks and limits of each zone.",
     .examples = "memtunectl zones --node 0\n"
                 "memtunectl zones -o wide",
     .run = &RunZones},
    {.name = "pagesets",
     .options = kPagesetOptions,
     .subjects = SubjectUse::kAll,
     .help = "Show batch, limits and filling of the per-CPU pagesets.",
     .examples = "memtunectl pagesets --rate 5s\n"
                 "memtunectl pagesets --cpu --node 0",
     .run = &RunPagesets},
    {.name = "processes",
     .options = kProcessOptions,
     .subjects = SubjectUse::kAll,
     .help = "Show the processes attached to a pool and what they hold.",
     .examples = "memtunectl --subject pools/default processes\n"
                 "memtunectl processes --nodes",
     .run = &RunProcesses},
    {.name = "stats",
     .argument = {"[NAME...]", ValueKind::kText, 0, kAnyNumber},
     .options = kStatsOptions,
     .subjects = SubjectUse::kAll,
     .help = "Show every statistic, or those whose metric name contains NAME.",
     .examples = "memtunectl stats zone_lock\n"
                 "memtunectl stats refills flushes --rate 5s",
     .run = &RunStats},
    {.name = "watch",
     .options = kWatchOptions,
     .subjects = SubjectUse::kAll,
     .help = "Follow the zones: rates of each interval, until interrupted.",
     .examples = "memtunectl watch --interval 2s\n"
                 "memtunectl watch -o json --count 10",
     .run = &RunWatch},
    {.name = "tunables",
     .argument = {"[NAME]", ValueKind::kTunable, 0, 1},
     .subjects = SubjectUse::kAll,
     .help = "Show values, ranges and defaults, and why one is read-only.",
     .examples = "memtunectl tunables\n"
                 "memtunectl tunables pageset.batch_factor",
     .run = &RunTunables},
    {.name = "set",
     .argument = {"TUNABLE=VALUE...", ValueKind::kAssignment, 1, kAnyNumber},
     .options = kSetOptions,
     .subjects = SubjectUse::kOne,
     .help = "Change tunables, all or none of them.",
     .examples = "memtunectl set pageset.batch_factor=2 --dry-run\n"
                 "memtunectl --subject pools/default set "
                 "pageset.batch_factor=2 --reason 'iperf regression'",
     .run = &RunSet},
    {.name = "recalculate",
     .alias = "recalc",
     .options = kRecalculateOptions,
     .subjects = SubjectUse::kOne,
     .help = "Compute pageset limits and watermarks anew from today's facts.",
     .examples = "memtunectl recalculate --dry-run\n"
                 "memtunectl recalc --node 0 --reason 'memory was added'",
     .run = &RunRecalculate},
    {.name = "drain",
     .options = kDrainOptions,
     .subjects = SubjectUse::kOne,
     .help = "Return the pages in pagesets to their zones; changes no limit.",
     .examples = "memtunectl drain --reason 'hugepage reservation'\n"
                 "memtunectl drain --node 0 --cpu 0-3 --dry-run",
     .run = &RunDrain},
    {.name = "limit",
     .argument = {"PROCESS BYTES", ValueKind::kText, 2, 2},
     .options = kSetOptions,
     .subjects = SubjectUse::kOne,
     .help = "Limit what a process (id or pid) may hold: bytes, none, or auto, "
             "the pool's.",
     .examples = "memtunectl limit 3-17 512MiB --reason 'leaks'\n"
                 "memtunectl --subject pools/default limit 3-17 auto",
     .run = &RunLimit},
    {.name = "process",
     .argument = {"set-mems PROCESS NODES", ValueKind::kText, 3, 3},
     .options = kSetOptions,
     .subjects = SubjectUse::kOne,
     .help = "Set the nodes a process (id or pid) may allocate from: numbers, "
             "or all.",
     .examples = "memtunectl process set-mems 3-17 0 --reason 'moves away'\n"
                 "memtunectl process set-mems 4711 0,2-3",
     .run = &RunProcess},
    {.name = "subjects",
     .subjects = SubjectUse::kAll,
     .help = "Show what the daemon watches and tunes.",
     .examples = "memtunectl subjects",
     .run = &RunSubjects},
    {.name = "health",
     .subjects = SubjectUse::kAll,
     .help = "Ask whether daemon and subjects serve; status 1 if one does not.",
     .examples = "memtunectl --timeout 2s health",
     .run = &RunHealth},
    {.name = "version",
     .help = "Show the versions of client and daemon.",
     .examples = "memtunectl version",
     .run = &RunVersion},
    {.name = "completion",
     .argument = {"SHELL", ValueKind::kChoice, 1, 1, kShells},
     .is_local = true,
     .help = "Print the completion script for bash, zsh or fish.",
     .examples = "source <(memtunectl completion bash)\n"
                 "source <(memtunectl completion zsh)\n"
                 "memtunectl completion fish | source",
     .run = &RunCompletion},
    {.name = "help",
     .argument = {"[VERB]", ValueKind::kVerb, 0, 1},
     .is_local = true,
     .help = "Show help on memtunectl or on a verb.",
     .examples = "memtunectl help set",
     .run = &RunHelp},
    {.name = "complete",
     .argument = {"[WORD...]", ValueKind::kText, 0, kAnyNumber},
     .is_local = true,
     .hidden = true,
     .help = "Print what may follow the words typed so far, a line each.",
     .run = &RunComplete},
    {.name = "reference",
     .argument = {"TABLE", ValueKind::kChoice, 1, 1, kReferences},
     .is_local = true,
     .hidden = true,
     .help = "Print one of memtuned's tables as Markdown.",
     .run = &RunReference},
}};

}  // namespace

std::span<const CommandDef> CommandTable() { return kCommands; }

std::span<const OptionDef> GlobalOptions() { return kGlobalOptions; }

const CommandDef* FindCommand(std::string_view name) {
  if (name.empty()) return nullptr;
  for (const CommandDef& command : kCommands) {
    if (name == command.name || name == command.alias) return &command;
  }
  return nullptr;
}

const OptionDef* FindOption(const CommandDef* command, std::string_view name) {
  if (name.empty()) return nullptr;
  auto find = [name](std::span<const OptionDef> options) -> const OptionDef* {
    for (const OptionDef& option : options) {
      if (name == option.name || name == option.letter) return &option;
    }
    return nullptr;
  };
  if (command != nullptr) {
    if (const OptionDef* option = find(command->options)) return option;
  }
  return find(kGlobalOptions);
}

std::string UsageLine(const CommandDef& command) {
  std::string usage = std::string("memtunectl [OPTIONS] ") + command.name;
  if (*command.argument.usage != '\0') {
    usage += std::string(" ") + command.argument.usage;
  }
  for (const OptionDef& option : command.options) {
    usage += std::string(" [") + option.name;
    if (*option.value != '\0') usage += std::string(" ") + option.value;
    usage += "]";
  }
  return usage;
}

}  // namespace memtuned::ctl
