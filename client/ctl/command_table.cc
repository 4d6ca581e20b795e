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

constexpr ArgumentDef kNoArgument = {"", ValueKind::kFlag};
constexpr int kAnyNumber = 1 << 20;

constexpr OptionDef kNode = {"--node",
                             "",
                             "N",
                             ValueKind::kNumbers,
                             "only these nodes: os indexes, as in 0 or 0,2-3",
                             {},
                             0,
                             kMaxNodeNumber};
constexpr OptionDef kZone = {"--zone",
                             "",
                             "ZONE",
                             ValueKind::kChoices,
                             "only these zones, as in Normal or Normal,Movable",
                             kZones};
constexpr OptionDef kRate = {
    "--rate",
    "",
    "TIME",
    ValueKind::kDuration,
    "look twice, this far apart, and show counters per second",
    {},
    0.1,
    3600};
constexpr OptionDef kReason = {"--reason", "", "TEXT", ValueKind::kText,
                               "why: kept with the change"};
constexpr OptionDef kDryRun = {"--dry-run", "", "", ValueKind::kFlag,
                               "show what would happen, change nothing"};
constexpr OptionDef kEtag = {
    "--etag", "", "ETAG", ValueKind::kText,
    "refuse if the tunables changed since this etag was read"};
constexpr OptionDef kRequestId = {
    "--request-id", "", "ID", ValueKind::kText,
    "a repeated call with the same id is not done twice"};

constexpr std::array<OptionDef, 7> kGlobalOptions = {{
    {"--target", "-t", "ADDR", ValueKind::kText,
     "the daemon's Unix socket, unix:/PATH or /PATH; default "
     "$MEMTUNED_TARGET, else unix:/run/memtuned/memtuned.sock"},
    {"--subject", "-s", "NAME", ValueKind::kSubject,
     "host or pools/NAME; reading verbs default to every subject"},
    {"--output", "-o", "FORMAT", ValueKind::kChoice,
     "table, wide (all columns, never shortened), json (the response in "
     "proto JSON, errors too) or yaml",
     kOutputs},
    {"--timeout",
     "",
     "TIME",
     ValueKind::kDuration,
     "deadline of each call, as in 10s or 300ms; default 10s",
     {},
     0.001,
     86400},
    {"--color", "", "WHEN", ValueKind::kChoice,
     "auto (on a terminal, unless NO_COLOR is set), always or never", kColors},
    {"--help", "-h", "", ValueKind::kFlag, "help on memtunectl or on a verb"},
    {"--version", "", "", ValueKind::kFlag,
     "the client's version; 'version' asks the daemon too"},
}};

constexpr std::array<OptionDef, 2> kZoneFilter = {kNode, kZone};
constexpr std::array<OptionDef, 4> kPagesetOptions = {
    {{"--cpu", "", "", ValueKind::kFlag,
      "one row for each CPU instead of each zone (also -o wide)"},
     kNode,
     kZone,
     kRate}};
constexpr std::array<OptionDef, 1> kStatsOptions = {kRate};
constexpr std::array<OptionDef, 2> kWatchOptions = {
    {{"--interval",
      "",
      "TIME",
      ValueKind::kDuration,
      "least time between two samples; default 1s",
      {},
      0.05,
      3600},
     {"--count",
      "-n",
      "N",
      ValueKind::kNumbers,
      "stop after this many samples of each subject",
      {},
      1,
      1000000000}}};
constexpr std::array<OptionDef, 4> kSetOptions = {kReason, kDryRun, kEtag,
                                                  kRequestId};
constexpr std::array<OptionDef, 6> kRecalculateOptions = {
    kReason, kDryRun, kEtag, kRequestId, kNode, kZone};
constexpr std::array<OptionDef, 7> kDrainOptions = {
    {kReason,
     kDryRun,
     kEtag,
     kRequestId,
     kNode,
     kZone,
     {"--cpu",
      "",
      "C",
      ValueKind::kNumbers,
      "only the pagesets of these CPUs, as in 0 or 0,4-7",
      {},
      0,
      kMaxCpuNumber}}};

constexpr std::array<CommandDef, 17> kCommands = {{
    {"topology",
     "",
     kNoArgument,
     {},
     SubjectUse::kAll,
     false,
     "Show nodes, their memory, CPUs and distances.",
     "memtunectl topology\n"
     "memtunectl --subject pools/default topology -o json",
     &RunTopology},
    {"zones", "", kNoArgument, kZoneFilter, SubjectUse::kAll, false,
     "Show size, free memory, watermarks and limits of each zone.",
     "memtunectl zones --node 0\n"
     "memtunectl zones -o wide",
     &RunZones},
    {"pagesets", "", kNoArgument, kPagesetOptions, SubjectUse::kAll, false,
     "Show batch, limits and filling of the per-CPU pagesets.",
     "memtunectl pagesets --rate 5s\n"
     "memtunectl pagesets --cpu --node 0",
     &RunPagesets},
    {"processes",
     "",
     kNoArgument,
     {},
     SubjectUse::kAll,
     false,
     "Show the processes attached to a pool and what they hold.",
     "memtunectl --subject pools/default processes",
     &RunProcesses},
    {"stats",
     "",
     {"[NAME...]", ValueKind::kText, 0, kAnyNumber},
     kStatsOptions,
     SubjectUse::kAll,
     false,
     "Show every statistic, or those whose metric name contains NAME.",
     "memtunectl stats zone_lock\n"
     "memtunectl stats refills flushes --rate 5s",
     &RunStats},
    {"watch", "", kNoArgument, kWatchOptions, SubjectUse::kAll, false,
     "Follow the zones: rates of each interval, until interrupted.",
     "memtunectl watch --interval 2s\n"
     "memtunectl watch -o json --count 10",
     &RunWatch},
    {"tunables",
     "",
     {"[NAME]", ValueKind::kTunable, 0, 1},
     {},
     SubjectUse::kAll,
     false,
     "Show values, ranges and defaults, and why one is read-only.",
     "memtunectl tunables\n"
     "memtunectl tunables pageset.batch_factor",
     &RunTunables},
    {"set",
     "",
     {"TUNABLE=VALUE...", ValueKind::kAssignment, 1, kAnyNumber},
     kSetOptions,
     SubjectUse::kOne,
     false,
     "Change tunables, all or none of them.",
     "memtunectl set pageset.batch_factor=2 --dry-run\n"
     "memtunectl --subject pools/default set pageset.batch_factor=2 "
     "pageset.free_high_factor=5 --reason 'iperf regression'",
     &RunSet},
    {"recalculate", "recalc", kNoArgument, kRecalculateOptions,
     SubjectUse::kOne, false,
     "Compute pageset limits and watermarks anew from today's facts.",
     "memtunectl recalculate --dry-run\n"
     "memtunectl recalc --node 0 --reason 'memory was added'",
     &RunRecalculate},
    {"drain", "", kNoArgument, kDrainOptions, SubjectUse::kOne, false,
     "Return the pages in pagesets to their zones; changes no limit.",
     "memtunectl drain --reason 'hugepage reservation'\n"
     "memtunectl drain --node 0 --cpu 0-3 --dry-run",
     &RunDrain},
    {"subjects",
     "",
     kNoArgument,
     {},
     SubjectUse::kAll,
     false,
     "Show what the daemon watches and tunes.",
     "memtunectl subjects",
     &RunSubjects},
    {"health",
     "",
     kNoArgument,
     {},
     SubjectUse::kAll,
     false,
     "Ask whether daemon and subjects serve; status 1 if one does not.",
     "memtunectl --timeout 2s health",
     &RunHealth},
    {"version",
     "",
     kNoArgument,
     {},
     SubjectUse::kNone,
     false,
     "Show the versions of client and daemon.",
     "memtunectl version",
     &RunVersion},
    {"completion",
     "",
     {"SHELL", ValueKind::kChoice, 1, 1, kShells},
     {},
     SubjectUse::kNone,
     false,
     "Print the completion script for bash, zsh or fish.",
     "source <(memtunectl completion bash)\n"
     "memtunectl completion zsh > ~/.zfunc/_memtunectl\n"
     "memtunectl completion fish > "
     "~/.config/fish/completions/memtunectl.fish",
     &RunCompletion},
    {"help",
     "",
     {"[VERB]", ValueKind::kVerb, 0, 1},
     {},
     SubjectUse::kNone,
     false,
     "Show help on memtunectl or on a verb.",
     "memtunectl help set",
     &RunHelp},
    {"complete",
     "",
     {"[WORD...]", ValueKind::kText, 0, kAnyNumber},
     {},
     SubjectUse::kNone,
     true,
     "Print what may follow the words typed so far, a line each.",
     "",
     &RunComplete},
    {"reference",
     "",
     {"TABLE", ValueKind::kChoice, 1, 1, kReferences},
     {},
     SubjectUse::kNone,
     true,
     "Print one of memtuned's tables as Markdown.",
     "",
     &RunReference},
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
