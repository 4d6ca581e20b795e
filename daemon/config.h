// SPDX-License-Identifier: Apache-2.0
// What the daemon is started with: one struct, filled from defaults, then the
// configuration file, then the command line. File and flags share names: the
// flag --sample-interval is the key sample-interval. Floor 5.
#ifndef MEMTUNED_DAEMON_CONFIG_H_
#define MEMTUNED_DAEMON_CONFIG_H_

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/access/role_config.h"
#include "daemon/pool/pool_config.h"
#include "daemon/user_list.h"

namespace memtuned {

struct Config {
  // ---- Where it is reached ----

  // Address of the API: "unix:PATH", at most 107 bytes of path. TCP is
  // refused: see listen_tls. Default: unix:RUNTIME_DIR/memtuned.sock.
  std::string listen;

  // Permissions and group of that socket: whoever may write to it may connect.
  // What they may do is what `roles` says. Defaults: 0660, and the daemon's
  // own group (-1).
  int listen_mode = 0660;
  int64_t listen_gid = -1;

  // A second address of the API for other machines, with mutual TLS 1.2 or
  // 1.3: "IP:PORT", "[IPV6]:PORT" or "off". Needs the three files below.
  // Default: off.
  std::string listen_tls = "off";

  // PEM files: the server's certificate with those that issued it, its key
  // without a passphrase, and the CAs whose clients may connect. Followed
  // while running; a set that is torn, does not match or is not valid now is
  // refused, and the last good one stays. Default: none.
  std::string tls_certificate, tls_key, tls_client_ca;

  // Address of the metrics, "HOST:PORT" with an IPv4 address, or "off". There
  // is neither TLS nor a password on it.
  // Default: 127.0.0.1:9750, reachable from this machine only.
  std::string metrics_listen = "127.0.0.1:9750";

  // Accept a metrics address that others can reach. Wrong: everybody in the
  // network reads the names and figures of every pool. Default: false.
  bool metrics_allow_remote = false;

  // Also expose per-CPU families: two more series for each CPU and zone, and
  // every sample is a full one. Default: false.
  bool metrics_per_cpu = false;

  // ---- Who may do what ----

  // Who is viewer, operator or admin, and of which subjects. Root and the
  // daemon's own user always are admin. Empty: members of the socket's group
  // are operators, others who can connect viewers, and certificates nothing.
  // Re-read on SIGHUP.
  std::vector<RoleGrant> roles;

  // Mutating calls of one caller, 1 to 1000000; as many at once. High: a
  // script gone wild keeps a pool recalculating. Re-read on SIGHUP.
  // Default: 600.
  int mutations_per_minute = 600;

  // Where each mutating and each denied call is written: "log" (the daemon's
  // own, at level info), "off", or a file, one JSON object a line, opened
  // again on SIGHUP. Default: log.
  std::string audit_log = "log";

  // ---- Where it keeps files ----

  // Sockets and the lock file; created with mode 0755. One daemon a folder.
  // Everything works without root in a folder of one's own.
  // Default: /run/memtuned.
  std::string runtime_dir = "/run/memtuned";

  // Kept for what survives a restart; nothing is written there yet.
  // Default: /var/lib/memtuned.
  std::string state_dir = "/var/lib/memtuned";

  // ---- What it serves ----

  // The machine the pools are laid out for: "live", "xml:FILE",
  // "synthetic:DESC" (as lstopo -i takes it) or "fsroot:DIR" (a copy of /sys
  // and /proc). Anything but live is a simulation: memory comes from wherever
  // this machine has it. Default: live.
  std::string topology = "live";

  // At least one; names are unique. Pool memory is taken at the start.
  std::vector<PoolConfig> pools;

  // Where the live machine's /proc and /sys are read. For containers and
  // tests. Defaults: /proc, /sys.
  std::string proc_root = "/proc";
  std::string sys_root = "/sys";

  // ---- How it behaves (re-read on SIGHUP) ----

  // Time between two samples of a pool, 10ms to 1h. Short: more work for this
  // daemon, none for allocating threads. Long: old figures everywhere.
  // Default: 1s.
  std::chrono::milliseconds sample_interval{1000};

  // "debug", "info", "warning" or "error". Default: info.
  std::string log_level = "info";

  // ---- Read at the start only ----

  // "text" or "json", one object a line. Default: text.
  std::string log_format = "text";
};

// One setting: the same row serves file, flags, --help, --check and SIGHUP.
struct ConfigSetting {
  const char* key;    // "sample-interval"
  const char* value;  // "DURATION" in the help, "" for a switch
  const char* help;
  bool reloadable;
  // Errors: kInvalidArgument "is 'x'; allowed ..." without the key.
  absl::Status (*set)(Config& config, const std::string& text);
  std::string (*get)(const Config& config);
};

// Everything but pools and roles.
std::span<const ConfigSetting> ConfigSettings();
const ConfigSetting* FindConfigSetting(const std::string& key);

// What was given on the command line, unchecked.
struct CommandLine {
  std::string config_file;  // --config, "" without
  bool check = false;       // --check
  // --help, --version or a mistake: print and exit.
  bool exit_now = false;
  int exit_code = 0;
  std::string exit_text;
  std::vector<std::pair<std::string, std::string>> settings;  // key, text
  std::vector<std::string> pools;  // "NAME=SIZE[,key=value...]"
  std::vector<std::string> roles;  // "ROLE[,key=value...]"
};

// config_flags.cc
CommandLine ParseCommandLine(int argc, const char* const* argv);

// config_file.cc: adds the settings of a YAML text to `config`. `file` is its
// name in messages.
// Errors: kInvalidArgument "FILE:LINE: field: value; allowed ...".
absl::Status ReadConfigText(const std::string& text, const std::string& file,
                            Config& config);

// A pool as it was written. `where` starts messages: "FILE:LINE: " or
// "--pool: ".
struct PoolText {
  struct Part {
    std::string where, key, value;
  };
  std::string where, name;
  std::vector<Part> parts;  // "size" is one of them
};

// config_pools.cc
// Splits "SIZE[/node][,key=value...]".
absl::StatusOr<PoolText> SplitPool(const std::string& where,
                                   const std::string& name,
                                   const std::string& text);
// Looks users and groups up and checks everything, then adds the pool.
// Errors: kInvalidArgument "WHERE pool.NAME.key is ...; allowed ...".
absl::Status AddPool(const PoolText& text, Config& config);
// "1GiB", "256GiB/node".
std::string PoolSizeText(const PoolConfig& pool);

// A role as it was written; a list is as many parts of one key.
struct RoleText {
  struct Part {
    std::string where, key, value;
  };
  std::string where;
  std::vector<Part> parts;
};

// config_roles.cc
// Splits "ROLE[,key=value...]".
absl::StatusOr<RoleText> SplitRole(const std::string& where,
                                   const std::string& text);
// Looks users and groups up, then adds the grant.
// Errors: kInvalidArgument "WHERE roles.key is ...; allowed ...".
absl::Status AddRole(const RoleText& text, Config& config);
// Errors: kInvalidArgument when a role names a subject that is not served.
absl::Status CheckRoles(const Config& config);
// As a part of a file; "" without roles.
std::string RolesText(const Config& config);

// config_users.cc
// A gid or the name of a group. Errors: kInvalidArgument, as
// ConfigSetting::set.
absl::Status ReadGroup(const std::string& text, uint32_t& gid);
// `key` is users (a uid, a name, or '*') or groups. Errors: kInvalidArgument,
// as ConfigSetting::set.
absl::Status AddToUserList(const std::string& key, const std::string& text,
                           UserList& list);
// As AddToUserList takes them.
std::vector<std::string> UsersOf(const UserList& list);
std::vector<std::string> GroupsOf(const UserList& list);
// "{users: ['1000', '*'], groups: ['4']}", for a file.
std::string UserListText(const UserList& list);

// config_tls.cc
// Errors: kInvalidArgument, as ConfigSetting::set.
absl::Status SetListenTls(Config& config, const std::string& text);
// Errors: kInvalidArgument when the address or one of its files is missing.
absl::Status CheckTls(const Config& config);

// In single quotes, for a file.
std::string YamlScalar(const std::string& text);
// "['a', 'b']". config_users.cc
std::string YamlList(const std::vector<std::string>& items);

// A value as messages show it: quoted, escaped, and cut when it is long.
std::string Echo(const std::string& text);

// Defaults, then the file, then the flags; then what depends on several
// settings is filled in and checked: socket paths, a pool at least, the
// metrics address, the files of TLS.
// Errors: kInvalidArgument, kNotFound or kPermissionDenied (file), each naming
// where the value stands.
absl::StatusOr<Config> LoadConfig(const CommandLine& command_line);

// The effective values, as a file that LoadConfig reads to the same values.
std::string ConfigText(const Config& config);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_CONFIG_H_
