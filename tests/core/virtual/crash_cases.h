// SPDX-License-Identifier: Apache-2.0
// The operations in which somebody dies. A new one is an entry in one of the
// tables; every test of crashes, and every mutant, finds it by its name.
#ifndef MEMTUNED_TESTS_CORE_VIRTUAL_CRASH_CASES_H_
#define MEMTUNED_TESTS_CORE_VIRTUAL_CRASH_CASES_H_

#include <string>
#include <string_view>
#include <vector>

#include "tests/core/virtual/crash_run.h"

namespace memtuned {

// Tables, by what is done.
std::vector<CrashCase> AllocateCrashCases();
std::vector<CrashCase> FreeCrashCases();
std::vector<CrashCase> HandoverCrashCases();
std::vector<CrashCase> ControlCrashCases();
std::vector<CrashCase> ReapCrashCases();

const std::vector<CrashCase>& AllCrashCases();
// Cases of that ending are those without it, with guards of kind kTrylock.
inline constexpr std::string_view kTrylockSuffix = "_trylock";

// What the operation does when nobody dies, as CrashReport::effect: so that it
// stays what its name says.
std::string_view EffectOfCrashCase(std::string_view name);
// Aborts when there is none.
const CrashCase& CrashCaseNamed(std::string_view name);

using Policy = PagesetPolicy;
// Limits of one policy; high does not float.
PagesetLimits LimitsOf(Policy policy, uint32_t batch, uint32_t high);
// `name`, an underscore, and the policy's.
std::string NameWith(const char* name, PagesetPolicy policy);

// Parks a chunk of `blocks` blocks in the depot, by hand.
void ParkChunk(CrashPool& pool, int order, uint32_t blocks);

inline constexpr Policy kCrashPolicies[] = {
    Policy::kFixed, Policy::kWatermark, Policy::kAdaptive, Policy::kMemtuned};

}  // namespace memtuned

#endif  // MEMTUNED_TESTS_CORE_VIRTUAL_CRASH_CASES_H_
