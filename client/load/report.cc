// SPDX-License-Identifier: Apache-2.0
#include "client/load/report.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

namespace memtuned::load {
namespace {

std::string Grouped(uint64_t value) {
  std::string text = std::to_string(value);
  for (auto at = static_cast<int>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<size_t>(at), " ");
  }
  return text;
}

std::string Decimal(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

void Row(const std::string& name, const std::string& value, std::ostream& out) {
  out << name << std::string(34 - std::min<size_t>(name.size(), 33), ' ')
      << std::string(20 - std::min<size_t>(value.size(), 20), ' ') << value
      << "\n";
}

std::string Described(const LoadConfig& config) {
  std::string text = GetShape(config.shape).name;
  if (GetShape(config.shape).n_means != nullptr) {
    text += " " + std::to_string(config.n);
  }
  const auto of = [](uint32_t count, const char* one, const char* many) {
    return std::to_string(count) + (count == 1 ? one : many);
  };
  return text + ", order " + std::to_string(config.order) + ", " +
         of(config.processes, " process", " processes") + " x " +
         of(config.threads, " thread", " threads");
}

}  // namespace

void PrintTable(const LoadConfig& config, const RunResult& result,
                std::ostream& out) {
  out << "pool " << result.pool << ": " << Described(config) << ", "
      << Decimal(result.seconds, 2) << " s"
      << (result.interrupted ? " (interrupted)" : "") << "\n\n";
  Row("operations", Grouped(result.totals.operations()), out);
  Row("operations per second",
      Grouped(static_cast<uint64_t>(result.operations_per_second())), out);
  Row("allocated pages", Grouped(result.allocated_pages), out);
  Row("allocation failures", Grouped(result.totals.failures), out);
  Row("zone-lock acquisitions per page",
      Decimal(result.lock_acquisitions_per_page(), 6), out);
  out << "\n";
  Row("counter of the pool", "change over the run", out);
  for (size_t i = 0; i < kNumCounters; ++i) {
    Row(kCounterNames[i], Grouped(result.counters[i]), out);
  }
}

void PrintJson(const LoadConfig& config, const RunResult& result,
               std::ostream& out) {
  nlohmann::ordered_json json;
  json["pool"] = result.pool;
  json["socket"] = config.socket_path;
  json["shape"] = GetShape(config.shape).name;
  json["n"] = config.n;
  json["order"] = config.order;
  json["processes"] = config.processes;
  json["threads"] = config.threads;
  json["seed"] = config.seed;
  json["seconds"] = result.seconds;
  json["interrupted"] = result.interrupted;
  json["operations"] = result.totals.operations();
  json["operations_per_second"] = result.operations_per_second();
  json["allocations"] = result.totals.allocations;
  json["frees"] = result.totals.frees;
  json["allocation_failures"] = result.totals.failures;
  json["allocated_pages"] = result.allocated_pages;
  json["zone_lock_acquisitions_per_page"] = result.lock_acquisitions_per_page();
  for (size_t i = 0; i < kNumCounters; ++i) {
    json["counters"][kCounterNames[i]] = result.counters[i];
  }
  out << json.dump(2, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace)
      << "\n";
}

void PrintProgress(double seconds, uint64_t operations, const Totals& totals,
                   const PoolCounters& delta, const LoadConfig& config,
                   std::ostream& log) {
  const uint64_t pages = totals.allocations << config.order;
  const double holds = pages == 0
                           ? 0
                           : static_cast<double>(delta[kZoneLockAcquisitions]) /
                                 static_cast<double>(pages);
  char line[200];
  std::snprintf(line, sizeof(line),
                "%6.0f s  %8.2f M operations/s  %.6f zone-lock "
                "acquisitions/page  %llu contended  %llu failures\n",
                seconds, static_cast<double>(operations) / 1e6, holds,
                static_cast<unsigned long long>(delta[kZoneLockContended]),
                static_cast<unsigned long long>(totals.failures));
  log << line << std::flush;
}

}  // namespace memtuned::load
