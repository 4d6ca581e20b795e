// SPDX-License-Identifier: Apache-2.0
// Implementation of completion.h.
#include "client/ctl/completion.h"

#include "client/ctl/command_table.h"
#include "core/stats.h"
#include "core/tunables.h"

namespace memtuned::ctl {
namespace {

// How far the words before the one to complete have got.
struct Progress {
  const CommandDef* command = nullptr;
  const OptionDef* waiting = nullptr;  // an option whose value comes next
  std::string target;
  std::vector<std::string> arguments;
};

Progress Walk(const std::vector<std::string>& words) {
  Progress progress;
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (progress.waiting != nullptr) {
      if (std::string_view(progress.waiting->name) == "--target") {
        progress.target = word;
      }
      progress.waiting = nullptr;
    } else if (word.rfind("--target=", 0) == 0) {
      progress.target = word.substr(9);
    } else if (word.size() > 1 && word[0] == '-') {
      const OptionDef* option = FindOption(progress.command, word);
      if (option != nullptr && option->kind != ValueKind::kFlag) {
        progress.waiting = option;
      }
    } else if (progress.command == nullptr) {
      progress.command = FindCommand(word);
    } else {
      progress.arguments.push_back(word);
    }
  }
  return progress;
}

void AddWords(std::span<const char* const> words,
              std::vector<Candidate>& candidates) {
  for (const char* word : words) candidates.push_back({word, ""});
}

void AddVerbs(std::vector<Candidate>& candidates) {
  for (const CommandDef& command : CommandTable()) {
    if (command.hidden) continue;
    candidates.push_back({command.name, command.help});
  }
}

void AddOptions(std::span<const OptionDef> options,
                std::vector<Candidate>& candidates) {
  for (const OptionDef& option : options) {
    candidates.push_back({option.name, option.help});
  }
}

// "pageset.policy=" first, its values once the '=' is there.
void AddAssignments(const std::string& word,
                    std::vector<Candidate>& candidates) {
  const size_t equals = word.find('=');
  if (equals == std::string::npos) {
    for (const TunableDef& def : TunableTable()) {
      candidates.push_back({std::string(def.name) + "=", def.help});
    }
    return;
  }
  const std::string name = word.substr(0, equals);
  const TunableDef* def = FindTunable(name);
  if (def == nullptr) return;
  for (const char* choice : def->choices) {
    candidates.push_back({name + "=" + choice, ""});
  }
  if (def->kind == TunableKind::kFlag) {
    candidates.push_back({name + "=true", ""});
    candidates.push_back({name + "=false", ""});
  }
  if (def->auto_allowed) candidates.push_back({name + "=auto", ""});
  const std::string standard = name + "=" + def->default_text;
  for (const Candidate& candidate : candidates) {
    if (candidate.text == standard) return;
  }
  candidates.push_back({standard, "the default"});
}

void AddValues(ValueKind kind, std::span<const char* const> choices,
               const Progress& progress, const std::string& word,
               const SubjectLister& list_subjects,
               std::vector<Candidate>& candidates) {
  switch (kind) {
    case ValueKind::kChoice:
    case ValueKind::kChoices:
      AddWords(choices, candidates);
      break;
    case ValueKind::kSubject:
      for (const std::string& name : list_subjects(progress.target)) {
        candidates.push_back({name, ""});
      }
      break;
    case ValueKind::kTunable:
      for (const TunableDef& def : TunableTable()) {
        candidates.push_back({def.name, def.help});
      }
      break;
    case ValueKind::kAssignment:
      AddAssignments(word, candidates);
      break;
    case ValueKind::kVerb:
      AddVerbs(candidates);
      break;
    default:
      break;
  }
}

void AddArguments(const Progress& progress, const std::string& word,
                  const SubjectLister& list_subjects,
                  std::vector<Candidate>& candidates) {
  const ArgumentDef& argument = progress.command->argument;
  if (static_cast<int>(progress.arguments.size()) >= argument.max) return;
  if (std::string_view(progress.command->name) == "stats") {
    for (const StatDef& def : StatTable()) {
      candidates.push_back({def.name, def.help});
    }
    return;
  }
  AddValues(argument.kind, argument.choices, progress, word, list_subjects,
            candidates);
}

}  // namespace

std::vector<Candidate> Complete(const std::vector<std::string>& words,
                                const SubjectLister& list_subjects) {
  const Progress progress = Walk(words);
  const std::string word = words.empty() ? "" : words.back();
  std::vector<Candidate> all;
  std::string begin;  // "--output=" of "--output=j"
  if (progress.waiting != nullptr) {
    AddValues(progress.waiting->kind, progress.waiting->choices, progress, word,
              list_subjects, all);
  } else if (word.rfind("--", 0) == 0 && word.find('=') != std::string::npos) {
    begin = word.substr(0, word.find('=') + 1);
    const OptionDef* option =
        FindOption(progress.command, begin.substr(0, begin.size() - 1));
    if (option != nullptr) {
      AddValues(option->kind, option->choices, progress,
                word.substr(begin.size()), list_subjects, all);
    }
  } else if (word.rfind('-', 0) == 0) {
    if (progress.command != nullptr) {
      AddOptions(progress.command->options, all);
    }
    AddOptions(GlobalOptions(), all);
  } else if (progress.command == nullptr) {
    AddVerbs(all);
  } else {
    AddArguments(progress, word, list_subjects, all);
  }

  std::vector<Candidate> fitting;
  for (Candidate& candidate : all) {
    candidate.text = begin + candidate.text;
    if (candidate.text.rfind(word, 0) == 0) {
      fitting.push_back(std::move(candidate));
    }
  }
  return fitting;
}

}  // namespace memtuned::ctl
