// SPDX-License-Identifier: Apache-2.0
// The table of settings, and how its sources come together.
#include "daemon/config.h"

#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "daemon/metrics/listen_address.h"

namespace memtuned {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;
constexpr size_t kMaxPathBytes = 1024;
constexpr size_t kMaxEchoedValue = 64;

absl::Status Bad(const std::string& text, const std::string& allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat("is ", Echo(text), "; allowed ", allowed));
}

absl::Status SetBool(bool& field, const std::string& text) {
  if (text != "true" && text != "false") return Bad(text, "true, false");
  field = text == "true";
  return absl::OkStatus();
}

absl::Status SetChoice(std::string& field, const std::string& text,
                       const std::vector<std::string>& choices) {
  for (const std::string& choice : choices) {
    if (text == choice) {
      field = text;
      return absl::OkStatus();
    }
  }
  return Bad(text, absl::StrJoin(choices, ", "));
}

// Relative paths count from the folder the daemon was started in.
absl::Status SetPath(std::string& field, const std::string& text) {
  const bool odd = text.find('\0') != std::string::npos ||
                   text.find('\n') != std::string::npos;
  if (text.empty() || text.size() > kMaxPathBytes || odd) {
    return Bad(text, absl::StrCat("a path of 1 to ", kMaxPathBytes,
                                  " bytes without line ends"));
  }
  std::string path =
      std::filesystem::absolute(text).lexically_normal().string();
  if (path.size() > 1 && path.back() == '/') path.pop_back();
  field = std::move(path);
  return absl::OkStatus();
}

absl::Status CheckSocketPath(const std::string& path) {
  if (path.size() < sizeof(sockaddr_un::sun_path)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "socket path ", Echo(path), " has ", path.size(), " bytes; allowed 1 to ",
      sizeof(sockaddr_un::sun_path) - 1, "; a shorter --runtime-dir helps"));
}

absl::Status SetListen(Config& config, const std::string& text) {
  if (!absl::StartsWith(text, "unix:")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "is ", Echo(text),
        "; allowed unix:PATH (TCP is served with mutual TLS only, see "
        "listen-tls)"));
  }
  std::string path;
  absl::Status status = SetPath(path, text.substr(5));
  if (status.ok()) status = CheckSocketPath(path);
  if (!status.ok()) return status;
  config.listen = absl::StrCat("unix:", path);
  return absl::OkStatus();
}

absl::Status SetListenMode(Config& config, const std::string& text) {
  const bool octal = !text.empty() && text.size() <= 4 &&
                     text.find_first_not_of("01234567") == std::string::npos;
  const int mode = octal ? std::stoi(text, nullptr, 8) : -1;
  if (mode < 0 || mode > 0777) return Bad(text, "an octal mode, 0 to 0777");
  config.listen_mode = mode;
  return absl::OkStatus();
}

absl::Status SetListenGroup(Config& config, const std::string& text) {
  uint32_t gid = 0;
  if (text == "-1") {
    config.listen_gid = -1;
    return absl::OkStatus();
  }
  absl::Status found = ReadGroup(text, gid);
  if (found.ok()) config.listen_gid = gid;
  return found;
}

absl::Status SetMutationsPerMinute(Config& config, const std::string& text) {
  int number = 0;
  if (!absl::SimpleAtoi(text, &number) || number < 1 || number > 1000000) {
    return Bad(text, "1 to 1000000");
  }
  config.mutations_per_minute = number;
  return absl::OkStatus();
}

absl::Status SetAuditLog(Config& config, const std::string& text) {
  if (text != "log" && text != "off") return SetPath(config.audit_log, text);
  config.audit_log = text;
  return absl::OkStatus();
}

// "" takes the file away.
absl::Status SetTlsFile(std::string& field, const std::string& text) {
  if (!text.empty()) return SetPath(field, text);
  field.clear();
  return absl::OkStatus();
}

absl::Status SetMetricsListen(Config& config, const std::string& text) {
  if (text != "off") {
    const auto address = ParseListenAddress(text);
    if (!address.ok()) return address.status();
  }
  config.metrics_listen = text;
  return absl::OkStatus();
}

// Only the kind: what follows it is the probe's to read.
absl::Status SetTopology(Config& config, const std::string& text) {
  bool known = text == "live";
  for (const char* prefix : {"xml:", "synthetic:", "fsroot:"}) {
    known = known || absl::StartsWith(text, prefix);
  }
  if (!known || text.find('\n') != std::string::npos) {
    return Bad(text, "live, xml:FILE, synthetic:DESC, fsroot:DIR");
  }
  config.topology = text;
  return absl::OkStatus();
}

absl::Status SetInterval(Config& config, const std::string& text) {
  absl::Duration interval;
  if (!absl::ParseDuration(text, &interval) ||
      interval < absl::Milliseconds(10) || interval > absl::Hours(1)) {
    return Bad(text, "10ms to 1h");
  }
  config.sample_interval = absl::ToChronoMilliseconds(interval);
  return absl::OkStatus();
}

std::string BoolText(bool value) { return value ? "true" : "false"; }

const ConfigSetting kSettings[] = {
    {"listen", "ADDR", "address of the API, unix:PATH", false, SetListen,
     [](const Config& c) { return c.listen; }},
    {"listen-mode", "MODE", "permissions of the API's socket", false,
     SetListenMode,
     [](const Config& c) { return absl::StrFormat("%04o", c.listen_mode); }},
    {"listen-group", "GROUP",
     "group of the API's socket, a name or gid; -1 is the daemon's own", false,
     SetListenGroup,
     [](const Config& c) { return absl::StrCat(c.listen_gid); }},
    {"listen-tls", "IP:PORT", "address of the API with mutual TLS, or off",
     false, SetListenTls, [](const Config& c) { return c.listen_tls; }},
    {"tls-certificate", "FILE", "PEM: the server's certificate and its issuers",
     false,
     [](Config& c, const std::string& t) {
       return SetTlsFile(c.tls_certificate, t);
     },
     [](const Config& c) { return c.tls_certificate; }},
    {"tls-key", "FILE", "PEM: the key of tls-certificate", false,
     [](Config& c, const std::string& t) { return SetTlsFile(c.tls_key, t); },
     [](const Config& c) { return c.tls_key; }},
    {"tls-client-ca", "FILE", "PEM: CAs whose clients may connect", false,
     [](Config& c, const std::string& t) {
       return SetTlsFile(c.tls_client_ca, t);
     },
     [](const Config& c) { return c.tls_client_ca; }},
    {"mutations-per-minute", "N",
     "how often a caller may change something, 1 to 1000000", true,
     SetMutationsPerMinute,
     [](const Config& c) { return absl::StrCat(c.mutations_per_minute); }},
    {"audit-log", "PATH",
     "where changes and denied calls are written: log, off or a file", false,
     SetAuditLog, [](const Config& c) { return c.audit_log; }},
    {"metrics-listen", "HOST:PORT", "address of the Prometheus metrics, or off",
     false, SetMetricsListen, [](const Config& c) { return c.metrics_listen; }},
    {"metrics-allow-remote", "",
     "accept a metrics address that other machines can reach", false,
     [](Config& c, const std::string& t) {
       return SetBool(c.metrics_allow_remote, t);
     },
     [](const Config& c) { return BoolText(c.metrics_allow_remote); }},
    {"metrics-per-cpu", "", "also expose metrics of each CPU", false,
     [](Config& c, const std::string& t) {
       return SetBool(c.metrics_per_cpu, t);
     },
     [](const Config& c) { return BoolText(c.metrics_per_cpu); }},
    {"runtime-dir", "DIR", "folder of sockets and the lock file", false,
     [](Config& c, const std::string& t) { return SetPath(c.runtime_dir, t); },
     [](const Config& c) { return c.runtime_dir; }},
    {"state-dir", "DIR", "folder of what survives a restart", false,
     [](Config& c, const std::string& t) { return SetPath(c.state_dir, t); },
     [](const Config& c) { return c.state_dir; }},
    {"topology", "SPEC",
     "the machine: live, xml:FILE, synthetic:DESC or fsroot:DIR", false,
     SetTopology, [](const Config& c) { return c.topology; }},
    {"proc-root", "DIR", "where /proc is read", false,
     [](Config& c, const std::string& t) { return SetPath(c.proc_root, t); },
     [](const Config& c) { return c.proc_root; }},
    {"sys-root", "DIR", "where /sys is read", false,
     [](Config& c, const std::string& t) { return SetPath(c.sys_root, t); },
     [](const Config& c) { return c.sys_root; }},
    {"sample-interval", "DURATION",
     "time between samples of a pool, 10ms to 1h", true, SetInterval,
     [](const Config& c) {
       return absl::FormatDuration(absl::FromChrono(c.sample_interval));
     }},
    {"log-level", "LEVEL", "debug, info, warning or error", true,
     [](Config& c, const std::string& t) {
       return SetChoice(c.log_level, t, {"debug", "info", "warning", "error"});
     },
     [](const Config& c) { return c.log_level; }},
    {"log-format", "FORMAT", "text or json", false,
     [](Config& c, const std::string& t) {
       return SetChoice(c.log_format, t, {"text", "json"});
     },
     [](const Config& c) { return c.log_format; }},
};

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("--config ", Echo(path)));
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--config ", Echo(path), " is not a regular file"));
  }
  if (static_cast<size_t>(info.st_size) > kMaxFileBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("--config ", Echo(path), " has ", info.st_size,
                     " bytes; allowed 0 to ", kMaxFileBytes));
  }
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) {
    return absl::ErrnoToStatus(errno, absl::StrCat("--config ", Echo(path)));
  }
  return text.str();
}

absl::Status CheckMetrics(const Config& config) {
  if (config.metrics_listen == "off") return absl::OkStatus();
  const auto address = ParseListenAddress(config.metrics_listen);
  if (!address.ok()) return address.status();
  if (address->loopback || config.metrics_allow_remote) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "metrics-listen is ", Echo(config.metrics_listen),
      ", which other machines can reach, and there is neither TLS nor a "
      "password; allowed 127.0.0.0/8, others only with metrics-allow-remote"));
}

// Fills what depends on several settings.
absl::Status Complete(Config& config) {
  if (config.listen.empty()) {
    absl::Status status = SetListen(
        config, absl::StrCat("unix:", config.runtime_dir, "/memtuned.sock"));
    if (!status.ok()) return status;
  }
  absl::Status tls = CheckTls(config);
  if (!tls.ok()) return tls;
  if (config.pools.empty()) {
    return absl::InvalidArgumentError(
        "there is no pool to serve; give --pool NAME=SIZE, as --pool "
        "default=1GiB, or the key pool in the file");
  }
  for (PoolConfig& pool : config.pools) {
    pool.sys_root = config.sys_root;
    pool.proc_root = config.proc_root;
    pool.socket_path =
        absl::StrCat(config.runtime_dir, "/pools/", pool.name, ".sock");
    absl::Status status = CheckSocketPath(pool.socket_path);
    if (!status.ok()) return status;
  }
  absl::Status roles = CheckRoles(config);
  if (!roles.ok()) return roles;
  return CheckMetrics(config);
}

}  // namespace

std::string YamlScalar(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    quoted += c;
    if (c == '\'') quoted += c;
  }
  return quoted + "'";
}

std::string Echo(const std::string& text) {
  return absl::StrCat("'",
                      absl::Utf8SafeCEscape(text.substr(0, kMaxEchoedValue)),
                      text.size() > kMaxEchoedValue ? "..." : "", "'");
}

std::span<const ConfigSetting> ConfigSettings() { return kSettings; }

const ConfigSetting* FindConfigSetting(const std::string& key) {
  for (const ConfigSetting& setting : kSettings) {
    if (key == setting.key) return &setting;
  }
  return nullptr;
}

absl::StatusOr<Config> LoadConfig(const CommandLine& command_line) {
  Config config;
  if (!command_line.config_file.empty()) {
    const auto text = ReadFile(command_line.config_file);
    if (!text.ok()) return text.status();
    const absl::Status read =
        ReadConfigText(*text, command_line.config_file, config);
    if (!read.ok()) return read;
  }
  for (const auto& [key, text] : command_line.settings) {
    const absl::Status set = FindConfigSetting(key)->set(config, text);
    if (!set.ok()) {
      return absl::Status(
          set.code(), absl::StrCat("--", key, " ", std::string(set.message())));
    }
  }
  for (const std::string& text : command_line.pools) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("--pool ", Echo(text),
                       " has no size; allowed NAME=SIZE[,key=value...]"));
    }
    const auto pool =
        SplitPool("--pool: ", text.substr(0, equals), text.substr(equals + 1));
    if (!pool.ok()) return pool.status();
    const absl::Status added = AddPool(*pool, config);
    if (!added.ok()) return added;
  }
  for (const std::string& text : command_line.roles) {
    const auto role = SplitRole("--role: ", text);
    if (!role.ok()) return role.status();
    const absl::Status added = AddRole(*role, config);
    if (!added.ok()) return added;
  }
  const absl::Status complete = Complete(config);
  if (!complete.ok()) return complete;
  return config;
}

std::string ConfigText(const Config& config) {
  std::string text;
  for (const ConfigSetting& setting : kSettings) {
    absl::StrAppend(&text, setting.key, ": ", YamlScalar(setting.get(config)),
                    "\n");
  }
  absl::StrAppend(&text, RolesText(config), "pool:\n");
  for (const PoolConfig& pool : config.pools) {
    absl::StrAppend(&text, "  ", pool.name, ":\n", "    size: '",
                    PoolSizeText(pool), "'\n    populate: '", pool.populate,
                    "'\n    mode: '0", absl::StrFormat("%o", pool.socket_mode),
                    "'\n");
    if (!pool.users.attach.empty()) {
      absl::StrAppend(&text, "    attach: ", UserListText(pool.users.attach),
                      "\n");
    }
    if (!pool.users.observe.empty()) {
      absl::StrAppend(&text, "    observe: ", UserListText(pool.users.observe),
                      "\n");
    }
    for (const TunableAssignment& tunable : pool.tunables) {
      absl::StrAppend(&text, "    ", tunable.tunable, ": ",
                      YamlScalar(ValueText(tunable.value)), "\n");
    }
  }
  return text;
}

}  // namespace memtuned
