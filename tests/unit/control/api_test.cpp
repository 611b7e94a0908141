#include "control/api.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "control/version.hpp"

namespace uzram::control {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// A directory with the device "disk", of 16 MiB and with a limit of 8 MiB.
class ControlApi : public testing::Test {
 protected:
  void SetUp() override {
    DeviceOptions options;
    options.name = "disk";
    options.disksize_bytes = 16 * kMiB;
    options.mem_limit_bytes = 8 * kMiB;
    auto created = Device::create(options);
    ASSERT_TRUE(created.has_value()) << created.error().message;
    device_ = std::move(*created);
    DeviceEntry entry;
    entry.device = device_.get();
    entry.name = "disk";
    entry.exports = {"nbd://one", "nbd://two"};
    ASSERT_TRUE(directory_.add(std::move(entry)).has_value());
  }

  [[nodiscard]] Reply get(std::string_view path) const { return api_.handle("GET", path, ""); }
  [[nodiscard]] Reply patch(std::string_view body) const {
    return api_.handle("PATCH", "/v1/devices/disk", body);
  }
  // A refusal: its status and code, and that its message holds all of `parts`.
  static void expect_refusal(const Reply& reply, int status, std::string_view code,
                             const std::vector<std::string>& parts) {
    EXPECT_EQ(reply.status, status) << reply.body;
    const json error = json::parse(reply.body).at("error");
    EXPECT_EQ(error.size(), 2U);
    EXPECT_EQ(error.at("code"), code);
    const auto message = error.at("message").get<std::string>();
    for (const std::string& part : parts) {
      EXPECT_NE(message.find(part), std::string::npos) << message << " lacks " << part;
    }
  }

  std::unique_ptr<Device> device_;
  DeviceDirectory directory_;
  Api api_{directory_};
};

TEST_F(ControlApi, version_is_the_build_s) {
  const Reply reply = get("/v1/version");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(json::parse(reply.body), json({{"version", version()}}));
}

TEST_F(ControlApi, a_device_object_has_exactly_the_settled_fields) {
  const std::set<std::string> expected = {"orig_data_size",
                                          "compr_data_size",
                                          "mem_used_total",
                                          "mem_limit",
                                          "mem_used_max",
                                          "same_pages",
                                          "pages_compacted",
                                          "huge_pages",
                                          "failed_reads",
                                          "failed_writes",
                                          "invalid_io",
                                          "node",
                                          "notify_free",
                                          "corrupt_pages",
                                          "huge_pages_since",
                                          "table_bytes",
                                          "name",
                                          "algorithm",
                                          "level",
                                          "disksize",
                                          "page_size",
                                          "mode",
                                          "workers",
                                          "streams",
                                          "comp_ratio",
                                          "exports",
                                          "reserve",
                                          "checksum",

                                          "train",
                                          "generations",
                                          "trained_saving"};
  const json object = json::parse(get("/v1/devices/disk").body);
  std::set<std::string> present;
  for (const auto& [key, value] : object.items()) {
    present.insert(key);
  }
  EXPECT_EQ(present, expected);
}

TEST_F(ControlApi, a_device_object_tells_options_and_exports) {
  const json object = json::parse(get("/v1/devices/disk").body);
  EXPECT_EQ(object.at("name"), "disk");
  EXPECT_EQ(object.at("algorithm"), "lz4");
  EXPECT_TRUE(object.at("level").is_number_integer());
  EXPECT_EQ(object.at("disksize"), 16 * kMiB);
  EXPECT_EQ(object.at("page_size"), 4096);
  EXPECT_EQ(object.at("checksum"), false);
  EXPECT_EQ(object.at("mode"), "auto");
  EXPECT_EQ(object.at("workers"), 0);
  EXPECT_EQ(object.at("streams"), 0);
  EXPECT_EQ(object.at("mem_limit"), 8 * kMiB);
  EXPECT_EQ(object.at("exports"), json({"nbd://one", "nbd://two"}));
}

TEST_F(ControlApi, the_list_is_an_array_of_the_same_objects) {
  const json list = json::parse(get("/v1/devices").body);
  ASSERT_TRUE(list.is_array());
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0], json::parse(get("/v1/devices/disk").body));
}

TEST_F(ControlApi, an_empty_directory_is_an_empty_array) {
  const DeviceDirectory empty;
  EXPECT_EQ(Api(empty).handle("GET", "/v1/devices", "").body, "[]\n");
}

TEST(DeviceObject, gives_every_statistic_its_own_field) {
  DeviceEntry entry;
  entry.name = "x";
  DeviceOptions options;
  options.level = 3;
  options.max_comp_streams = 5;
  options.reserve_bytes = 17;
  DeviceStats stats;
  stats.orig_data_size = 1;
  stats.compr_data_size = 2;
  stats.mem_used_total = 4;
  stats.mem_limit = 14;
  stats.mem_used_max = 15;
  stats.same_pages = 6;
  stats.pages_compacted = 7;
  stats.huge_pages = 8;
  stats.huge_pages_since = 9;
  stats.failed_reads = 10;
  stats.failed_writes = 11;
  stats.invalid_io = 12;
  stats.notify_free = 13;
  stats.table_bytes = 16;
  stats.corrupt_pages = 18;
  stats.generations = 19;
  stats.trained_saving = 0.125;
  const json object = device_object(entry, options, stats);
  const json expected = {{"orig_data_size", 1},  {"compr_data_size", 2},    {"mem_used_total", 4},
                         {"mem_limit", 14},      {"mem_used_max", 15},      {"same_pages", 6},
                         {"pages_compacted", 7}, {"huge_pages", 8},         {"huge_pages_since", 9},
                         {"failed_reads", 10},   {"failed_writes", 11},     {"invalid_io", 12},
                         {"notify_free", 13},    {"table_bytes", 16},       {"level", 3},
                         {"streams", 5},         {"comp_ratio", 0.25},      {"reserve", 17},
                         {"corrupt_pages", 18},  {"trained_saving", 0.125}, {"generations", 19}};
  for (const auto& [key, value] : expected.items()) {
    EXPECT_EQ(object.at(key), value) << key;
  }
}

TEST(DeviceObject, ratio_is_null_while_nothing_is_stored) {
  DeviceStats stats;
  EXPECT_TRUE(device_object({}, {}, stats).at("comp_ratio").is_null());
  // Same-filled pages alone: stored, but not in the pool.
  stats.orig_data_size = 4096;
  EXPECT_TRUE(device_object({}, {}, stats).at("comp_ratio").is_null());
  // A pool that is kept although all was discarded.
  stats.orig_data_size = 0;
  stats.mem_used_total = 4096;
  EXPECT_TRUE(device_object({}, {}, stats).at("comp_ratio").is_null());
}

TEST_F(ControlApi, patch_sets_the_limit_from_a_number_rounded_up_to_a_page) {
  const Reply reply = patch(R"({"mem_limit": 5000})");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(json::parse(reply.body).at("mem_limit"), 8192);
  EXPECT_EQ(device_->stats().mem_limit, 8192U);
}

TEST_F(ControlApi, patch_sets_the_limit_from_a_size_and_removes_it_with_0) {
  EXPECT_EQ(patch(R"({"mem_limit": "2M"})").status, 200);
  EXPECT_EQ(device_->stats().mem_limit, 2 * kMiB);
  EXPECT_EQ(patch(R"({"mem_limit": 0})").status, 200);
  EXPECT_EQ(device_->stats().mem_limit, 0U);
}

TEST_F(ControlApi, patch_restarts_the_high_water_mark) {
  const std::vector<std::byte> noise = [] {
    std::vector<std::byte> bytes(2 * kMiB);
    std::uint64_t state = 1;
    for (std::byte& byte : bytes) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      byte = static_cast<std::byte>(state >> 56U);
    }
    return bytes;
  }();
  ASSERT_EQ(device_->write(0, noise), Errc::ok);
  ASSERT_EQ(device_->discard(0, noise.size()), Errc::ok);
  ASSERT_EQ(patch(R"({"compact": 1, "mem_used_max": 0})").status, 200);
  EXPECT_EQ(device_->stats().mem_used_max, device_->stats().mem_used_total);
}

TEST(DeviceObject, saving_is_null_before_tables_are_trained) {
  const json object = device_object({}, {}, {});
  EXPECT_EQ(object.at("train"), false);
  EXPECT_EQ(object.at("generations"), 0);
  EXPECT_TRUE(object.at("trained_saving").is_null());
}

TEST_F(ControlApi, patch_pauses_training_of_devices_made_for_it) {
  EXPECT_EQ(patch(R"({"train": false})").status, 200);
  expect_refusal(patch(R"({"train": true})"), 400, "EINVAL", {"disk", "train on"});
  for (const char* const value : {"1", "\"on\"", "null"}) {
    expect_refusal(patch(std::string(R"({"train": )") + value + "}"), 400, "EINVAL",
                   {"train", "true or false"});
  }
  DeviceOptions options;
  options.name = "trains";
  options.disksize_bytes = 16 * kMiB;
  options.algorithm = "pagez";
  options.train = true;
  auto trains = Device::create(options);
  ASSERT_TRUE(trains.has_value());
  DeviceEntry entry;
  entry.device = trains->get();
  entry.name = "trains";
  ASSERT_TRUE(directory_.add(std::move(entry)).has_value());
  for (const bool train : {false, true}) {
    const std::string body = std::string(R"({"train": )") + (train ? "true" : "false") + "}";
    const Reply reply = api_.handle("PATCH", "/v1/devices/trains", body);
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(json::parse(reply.body).at("train"), train);
    EXPECT_EQ((*trains)->options().train, train);
  }
}

TEST_F(ControlApi, patch_changes_mode_and_workers) {
  const Reply reply = patch(R"({"mode": "async", "workers": 2})");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(json::parse(reply.body).at("mode"), "async");
  EXPECT_EQ(json::parse(reply.body).at("workers"), 2);
  EXPECT_EQ(device_->options().mode, Mode::async);
  EXPECT_EQ(device_->options().workers, 2U);
  // Each alone leaves the other as it is.
  EXPECT_EQ(json::parse(patch(R"({"mode": "nowait"})").body).at("workers"), 2);
  EXPECT_EQ(json::parse(patch(R"({"workers": 0})").body).at("mode"), "nowait");
}

TEST_F(ControlApi, patch_refuses_modes_and_workers_there_are_not) {
  for (const char* const value : {"\"fast\"", "1", "null", "[\"auto\"]"}) {
    expect_refusal(patch(std::string(R"({"mode": )") + value + "}"), 400, "EINVAL",
                   {"mode", "nowait"});
  }
  for (const char* const value : {"257", "-1", "\"2\"", "1.5"}) {
    expect_refusal(patch(std::string(R"({"workers": )") + value + "}"), 400, "EINVAL",
                   {"workers", "256"});
  }
}

TEST_F(ControlApi, patch_refuses_unknown_and_unsettable_attributes_by_name) {
  expect_refusal(patch(R"({"colour": 1})"), 400, "EINVAL", {"colour", "mem_limit", "compact"});
  expect_refusal(patch(R"({"disksize": 1})"), 400, "EINVAL", {"disksize"});
}

TEST_F(ControlApi, patch_refuses_wrong_types_and_values) {
  for (const char* const value :
       {"-1", "1.5", "true", "null", "[]", "\"4X\"", "\"\"", "18446744073709551615"}) {
    const std::string body = std::string(R"({"mem_limit": )") + value + "}";
    expect_refusal(patch(body), 400, "EINVAL", {"mem_limit"});
  }
  for (const char* const value : {"1", "\"0\"", "false", "null", "0.0"}) {
    const std::string body = std::string(R"({"mem_used_max": )") + value + "}";
    expect_refusal(patch(body), 400, "EINVAL", {"mem_used_max", "expected 0"});
  }
  for (const char* const value : {"0", "2", "\"1\"", "true", "1.0"}) {
    const std::string body = std::string(R"({"compact": )") + value + "}";
    expect_refusal(patch(body), 400, "EINVAL", {"compact", "expected 1"});
  }
}

TEST_F(ControlApi, patch_refuses_bodies_that_are_no_object) {
  for (const char* const body : {"", "{", "[]", "1", "{}", "{\"compact\": 1} x", "\xff"}) {
    expect_refusal(patch(body), 400, "EINVAL", {"body", "mem_limit"});
  }
}

TEST_F(ControlApi, patch_that_is_wrong_in_part_changes_nothing) {
  expect_refusal(patch(R"({"mem_limit": "1M", "compact": 7})"), 400, "EINVAL", {"compact"});
  EXPECT_EQ(device_->stats().mem_limit, 8 * kMiB);
}

TEST_F(ControlApi, an_unknown_device_is_not_found) {
  expect_refusal(get("/v1/devices/nobody"), 404, "ENOENT", {"nobody"});
  expect_refusal(api_.handle("PATCH", "/v1/devices/nobody", R"({"compact":1})"), 404, "ENOENT",
                 {"nobody"});
}

TEST_F(ControlApi, an_unknown_path_is_not_found) {
  for (const char* const path : {"", "/", "/v1", "/v1/devices/", "/v1/devicesx", "/v2/devices"}) {
    expect_refusal(get(path), 404, "ENOENT", {"/v1/devices"});
  }
}

TEST_F(ControlApi, other_methods_are_refused) {
  expect_refusal(api_.handle("POST", "/v1/devices", "{}"), 405, "ENOTSUP", {"POST", "GET"});
  expect_refusal(api_.handle("DELETE", "/v1/devices/disk", ""), 405, "ENOTSUP",
                 {"DELETE", "PATCH"});
  expect_refusal(api_.handle("PATCH", "/v1/version", "{}"), 405, "ENOTSUP", {"PATCH"});
}

TEST_F(ControlApi, names_that_are_not_UTF_8_make_valid_JSON) {
  const Reply reply = get("/v1/devices/\xff\xfe");
  EXPECT_EQ(reply.status, 404);
  EXPECT_TRUE(json::accept(reply.body));
}

}  // namespace
}  // namespace uzram::control
