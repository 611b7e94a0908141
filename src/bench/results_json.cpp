// The JSON of results: to_json, from_json, parse_results.
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "bench/results.hpp"

namespace uzram::bench {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kFormat = "uzram-bench-1";
// Deeper than anything we write: what prints JSON calls itself for each level.
constexpr int kDeepest = 16;
// Finding a name in an ordered object is linear, so that long ones take quadratic time to read.
constexpr std::size_t kMostMembers = 1000;

// The fields of a row, in the order of the file; the one list for writing and reading.
template <typename AnyRow, typename Visit>
void for_each_field(AnyRow& row, Visit& visit) {
  visit("target", row.target);
  visit("label", row.label);
  visit("path", row.path);
  visit("algorithm", row.algorithm);
  visit("level", row.level);
  visit("mode", row.mode);
  visit("streams", row.streams);
  visit("corpus", row.corpus);
  visit("op", row.op);
  visit("state", row.state);
  visit("threads", row.threads);
  visit("iodepth", row.iodepth);
  visit("block_size", row.block_size);
  visit("rounds", row.rounds);
  visit("mb_per_s", row.mb_per_s);
  visit("iops", row.iops);
  visit("us_per_page", row.us_per_page);
  visit("ratio_to_first", row.ratio_to_first);
  visit("ratio_to_codec", row.ratio_to_codec);
  visit("elapsed_s", row.elapsed_s);
  visit("read_mb_per_s", row.read_mb_per_s);
  visit("write_mb_per_s", row.write_mb_per_s);
  visit("user_s", row.user_s);
  visit("sys_s", row.sys_s);
  visit("context_switches", row.context_switches);
  visit("counters", row.counters);
  visit("compr_ratio", row.compr_ratio);
  visit("mem_ratio", row.mem_ratio);
  visit("mem_used", row.mem_used);
  visit("peak_memory", row.peak_memory);
  visit("latency_ns", row.latency);
  visit("submit_latency_ns", row.submit_latency);
}

template <typename AnyLatency, typename Visit>
void for_each_field_of_latency(AnyLatency& latency, Visit& visit) {
  visit("min", latency.min_ns);
  visit("avg", latency.avg_ns);
  visit("p50", latency.p50_ns);
  visit("p99", latency.p99_ns);
  visit("p999", latency.p999_ns);
  visit("max", latency.max_ns);
}

class Writer {
 public:
  template <typename T>
  void operator()(const char* name, const T& field) {
    object_[name] = value(field);
  }
  [[nodiscard]] ordered_json take() { return std::move(object_); }

 private:
  template <typename T>
  static ordered_json value(const T& field) {
    return field;
  }
  template <typename T>
  static ordered_json value(const std::optional<T>& field) {
    return field ? value(*field) : ordered_json(nullptr);
  }
  static ordered_json value(const Spread& spread) {
    if (spread.empty()) {
      return nullptr;
    }
    return {{"median", spread.median()},
            {"min", spread.min()},
            {"max", spread.max()},
            {"values", spread.values()}};
  }
  static ordered_json value(const Latency& latency) {
    Writer writer;
    for_each_field_of_latency(latency, writer);
    return writer.take();
  }
  static ordered_json value(const std::map<std::string, double>& counters) {
    return counters.empty() ? ordered_json("unavailable") : ordered_json(counters);
  }

  ordered_json object_ = ordered_json::object();
};

// Each reads one kind of field and returns what it expected, nullptr when that was there.

const char* read(const ordered_json& json, std::string& field) {
  if (!json.is_string()) {
    return "a string";
  }
  field = json.get_ref<const std::string&>();
  return nullptr;
}

const char* read(const ordered_json& json, double& field) {
  constexpr const char* kExpected = "a number of 0 or more";
  if (!json.is_number()) {
    return kExpected;
  }
  const double number = json.get<double>();
  if (!std::isfinite(number) || number < 0) {
    return kExpected;
  }
  field = number;
  return nullptr;
}

const char* read(const ordered_json& json, std::uint64_t& field) {
  constexpr const char* kExpected = "a whole number of 0 or more";
  // Other programs may write whole numbers as 4096.0.
  if (json.is_number_float()) {
    const double number = json.get<double>();
    if (!(number >= 0 && number < 0x1p63) || number != std::floor(number)) {
      return kExpected;
    }
    field = static_cast<std::uint64_t>(number);
    return nullptr;
  }
  if (!json.is_number_unsigned() && !(json.is_number_integer() && json.get<std::int64_t>() >= 0)) {
    return kExpected;
  }
  field = json.get<std::uint64_t>();
  return nullptr;
}

const char* read(const ordered_json& json, std::uint32_t& field) {
  std::uint64_t wide = 0;
  if (read(json, wide) != nullptr || wide > std::numeric_limits<std::uint32_t>::max()) {
    return "a whole number from 0 to 4294967295";
  }
  field = static_cast<std::uint32_t>(wide);
  return nullptr;
}

const char* read(const ordered_json& json, int& field) {
  const double number = json.is_number() ? json.get<double>() : 0.5;
  if (!(std::fabs(number) <= std::numeric_limits<int>::max()) || number != std::floor(number)) {
    return "a whole number";
  }
  field = static_cast<int>(number);
  return nullptr;
}

const char* read(const ordered_json& json, Spread& field) {
  constexpr const char* kExpected =
      "null or an object with \"values\", a list of one or more numbers of 0 or more";
  field = Spread();
  if (json.is_null()) {
    return nullptr;
  }
  const auto list = json.find("values");  // end() as well where `json` is no object
  if (list == json.end() || !list->is_array() || list->empty()) {
    return kExpected;
  }
  std::vector<double> values(list->size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (read((*list)[i], values[i]) != nullptr) {
      return kExpected;
    }
  }
  field = Spread(std::move(values));
  return nullptr;
}

const char* read(const ordered_json& json, std::map<std::string, double>& field) {
  constexpr const char* kExpected = "\"unavailable\" or an object of numbers of 0 or more";
  field.clear();
  if (json == "unavailable") {
    return nullptr;
  }
  if (!json.is_object()) {
    return kExpected;
  }
  for (const auto& [name, value] : json.items()) {
    if (read(value, field[name]) != nullptr) {
      return kExpected;
    }
  }
  return nullptr;
}

const char* read(const ordered_json& json, Latency& field) {
  const char* failure = json.is_object() ? nullptr : "";
  const auto visit = [&](const char* name, auto& number) {
    const auto found = json.find(name);
    if (failure == nullptr && (found == json.end() || read(*found, number) != nullptr)) {
      failure = "";
    }
  };
  for_each_field_of_latency(field, visit);
  return failure == nullptr ? nullptr
                            : "null or an object with the numbers min, avg, p50, p99, p999 and max";
}

template <typename T>
const char* read(const ordered_json& json, std::optional<T>& field) {
  field.reset();
  return json.is_null() ? nullptr : read(json, field.emplace());
}

// Whether `json` is nested at most `levels` deep.
bool shallow(const ordered_json& json, int levels) {  // NOLINT(misc-no-recursion)
  if (!json.is_structured()) {
    return true;
  }
  for (const ordered_json& member : json) {
    if (levels == 0 || !shallow(member, levels - 1)) {
      return false;
    }
  }
  return true;
}

const char* read(const ordered_json& json, ordered_json& field) {
  if (!json.is_object() || !shallow(json, kDeepest)) {
    return "an object, not nested deeply";
  }
  field = json;
  return nullptr;
}

const char* read(const ordered_json& json, bool& field) {
  if (!json.is_boolean()) {
    return "true or false";
  }
  field = json.get<bool>();
  return nullptr;
}

const char* read(const ordered_json& json, std::vector<std::string>& field) {
  field.clear();
  for (const ordered_json& text : json) {
    if (!json.is_array() || read(text, field.emplace_back()) != nullptr) {
      return "a list of strings";
    }
  }
  return json.is_array() ? nullptr : "a list of strings";
}

class Reader {
 public:
  explicit Reader(const ordered_json& object) : object_(object) {}

  template <typename T>
  void operator()(const char* name, T& field) {
    if (!failure_.empty()) {
      return;
    }
    const auto found = object_.find(name);
    if (found == object_.end()) {
      failure_ = fmt::format("field \"{}\" is missing", name);
    } else if (const char* expected = read(*found, field); expected != nullptr) {
      failure_ =
          fmt::format("field \"{}\": expected {}, found {}", name, expected, found->type_name());
    }
  }
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }

 private:
  const ordered_json& object_;
  std::string failure_;
};

Error invalid(std::string message) { return Error{Errc::invalid_argument, 0, std::move(message)}; }

}  // namespace

ordered_json to_json(const ResultFile& results) {
  ordered_json rows = ordered_json::array();
  for (const Row& row : results.rows) {
    Writer writer;
    for_each_field(row, writer);
    rows.push_back(writer.take());
  }
  return {
      {"format", kFormat},
      {"machine", results.machine.is_null() ? ordered_json::object() : results.machine},
      {"suite", results.suite},
      {"parameters", results.parameters.is_null() ? ordered_json::object() : results.parameters},
      {"notes", results.notes},
      {"interrupted", results.interrupted},
      {"rows", std::move(rows)}};
}

Result<ResultFile> from_json(const ordered_json& json) {
  const auto format = json.find("format");
  if (format == json.end() || *format != kFormat) {
    return invalid(
        fmt::format("expected an object with \"format\": \"{}\", as `uzram bench "
                    "--json` writes it",
                    kFormat));
  }
  ResultFile results;
  Reader reader(json);
  reader("machine", results.machine);
  reader("suite", results.suite);
  reader("parameters", results.parameters);
  reader("notes", results.notes);
  reader("interrupted", results.interrupted);
  if (!reader.failure().empty()) {
    return invalid(reader.failure());
  }
  const auto rows = json.find("rows");
  if (rows == json.end() || !rows->is_array()) {
    return invalid("field \"rows\": expected a list");
  }
  for (const ordered_json& object : *rows) {
    const std::size_t number = results.rows.size() + 1;
    if (!object.is_object()) {
      return invalid(
          fmt::format("row {}: expected an object, found {}", number, object.type_name()));
    }
    Reader row_reader(object);
    for_each_field(results.rows.emplace_back(), row_reader);
    if (!row_reader.failure().empty()) {
      return invalid(fmt::format("row {}: {}", number, row_reader.failure()));
    }
  }
  return results;
}

Result<ResultFile> parse_results(std::string_view text) {
  bool within_limits = true;
  std::vector<std::size_t> members;
  // Once it has refused something it keeps nothing more, so that the rest costs no memory.
  const auto filter = [&](int depth, ordered_json::parse_event_t event, ordered_json&) {
    if (event == ordered_json::parse_event_t::object_start) {
      members.resize(static_cast<std::size_t>(depth) + 1);
      members.back() = 0;
    } else if (event == ordered_json::parse_event_t::key) {
      within_limits =
          within_limits && ++members.at(static_cast<std::size_t>(depth) - 1) <= kMostMembers;
    }
    within_limits = within_limits && depth <= kDeepest;
    return within_limits;
  };
  const ordered_json json = ordered_json::parse(text, filter, false);
  if (!within_limits) {
    return invalid(fmt::format("expected at most {} levels of nesting and {} members in an object",
                               kDeepest, kMostMembers));
  }
  if (json.is_discarded()) {
    return invalid("expected JSON, as `uzram bench --json` writes it");
  }
  return from_json(json);
}

}  // namespace uzram::bench
