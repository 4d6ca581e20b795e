// SPDX-License-Identifier: Apache-2.0
// A RawMachine to bytes and back: eight bytes a number, texts and lists after
// their length.
#include "daemon/host/raw_machine_codec.h"

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace memtuned {
namespace {

class Writer {
 public:
  template <typename T>
  void Number(T value) {
    const uint64_t word = static_cast<uint64_t>(value);
    bytes_.append(reinterpret_cast<const char*>(&word), sizeof(word));
  }
  void Text(std::string_view text) {
    Number(text.size());
    bytes_.append(text);
  }
  template <typename T>
  void Numbers(const std::vector<T>& numbers) {
    Number(numbers.size());
    for (T number : numbers) Number(number);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads what Writer wrote; past the end it gives zeros and good() is false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <typename T>
  T Number() {
    uint64_t word = 0;
    if (rest_.size() < sizeof(word)) {
      good_ = false;
      return T{};
    }
    std::memcpy(&word, rest_.data(), sizeof(word));
    rest_.remove_prefix(sizeof(word));
    return static_cast<T>(word);
  }
  // A count of things that take at least `bytes_each`.
  size_t Count(size_t bytes_each) {
    const uint64_t count = Number<uint64_t>();
    if (count <= rest_.size() / bytes_each) return static_cast<size_t>(count);
    good_ = false;
    return 0;
  }
  std::string Text() {
    const size_t size = Count(1);
    std::string text(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return text;
  }
  template <typename T>
  std::vector<T> Numbers() {
    std::vector<T> numbers(Count(sizeof(uint64_t)));
    for (T& number : numbers) number = Number<T>();
    return numbers;
  }
  bool good() const { return good_; }
  bool AtEnd() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  bool good_ = true;
};

void WriteNode(const RawNode& node, Writer* writer) {
  writer->Number(node.os_index);
  writer->Number(node.memory_bytes);
  writer->Numbers(node.local_cpus);
  writer->Number(node.allowed);
  writer->Number(node.special);
}

RawNode ReadNode(Reader* reader) {
  RawNode node;
  node.os_index = reader->Number<int64_t>();
  node.memory_bytes = reader->Number<uint64_t>();
  node.local_cpus = reader->Numbers<int>();
  node.allowed = reader->Number<bool>();
  node.special = reader->Number<bool>();
  return node;
}

void WriteMachine(const RawMachine& machine, Writer* writer) {
  writer->Number(machine.source);
  writer->Text(machine.description);
  writer->Number(machine.nodes.size());
  for (const RawNode& node : machine.nodes) WriteNode(node, writer);
  writer->Numbers(machine.online_cpus);
  writer->Numbers(machine.allowed_cpus);
  writer->Numbers(machine.complete_cpus);
  writer->Number(machine.distances.size());
  for (const auto& row : machine.distances) writer->Numbers(row);
  writer->Number(machine.nearest_in_tree.size());
  for (const auto& [cpu, nids] : machine.nearest_in_tree) {
    writer->Number(cpu);
    writer->Numbers(nids);
  }
  writer->Number(machine.warnings.size());
  for (const std::string& warning : machine.warnings) writer->Text(warning);
}

RawMachine ReadMachine(Reader* reader) {
  RawMachine machine;
  machine.source = reader->Number<TopologySource>();
  machine.description = reader->Text();
  for (size_t n = reader->Count(1); n > 0 && reader->good(); --n) {
    machine.nodes.push_back(ReadNode(reader));
  }
  machine.online_cpus = reader->Numbers<int>();
  machine.allowed_cpus = reader->Numbers<int>();
  machine.complete_cpus = reader->Numbers<int>();
  for (size_t n = reader->Count(1); n > 0 && reader->good(); --n) {
    machine.distances.push_back(reader->Numbers<uint64_t>());
  }
  for (size_t n = reader->Count(1); n > 0 && reader->good(); --n) {
    const int cpu = reader->Number<int>();
    machine.nearest_in_tree[cpu] = reader->Numbers<int64_t>();
  }
  for (size_t n = reader->Count(1); n > 0 && reader->good(); --n) {
    machine.warnings.push_back(reader->Text());
  }
  return machine;
}

}  // namespace

std::string EncodeRawMachine(const absl::StatusOr<RawMachine>& machine) {
  Writer writer;
  writer.Number(machine.status().code());
  if (machine.ok()) {
    WriteMachine(*machine, &writer);
  } else {
    writer.Text(std::string(machine.status().message()));
  }
  return writer.Take();
}

absl::StatusOr<RawMachine> DecodeRawMachine(const std::string& bytes) {
  Reader reader(bytes);
  const int code = reader.Number<int>();
  absl::StatusOr<RawMachine> machine = RawMachine();
  if (code == 0) {
    machine = ReadMachine(&reader);
  } else {
    machine = absl::Status(static_cast<absl::StatusCode>(code), reader.Text());
  }
  if (reader.good() && reader.AtEnd()) return machine;
  return absl::DataLossError("a topology came back damaged");
}

}  // namespace memtuned
