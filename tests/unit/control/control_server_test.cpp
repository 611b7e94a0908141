#include "control/control_server.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/control_client.hpp"
#include "support/temporary_folder.hpp"

namespace uzram::control {
namespace {

using nlohmann::json;

// What a server answers to `request` until it closes the connection.
std::string raw_exchange(const std::string& path, std::string_view request) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), address.sun_path);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(::send(fd, request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  std::string answer;
  std::array<char, 4096> room{};
  for (ssize_t got = 0; (got = ::read(fd, room.data(), room.size())) > 0;) {
    answer.append(room.data(), static_cast<std::size_t>(got));
  }
  ::close(fd);
  return answer;
}

std::string request_of(const std::string& method, const std::string& path,
                       const std::string& body) {
  return method + " " + path +
         " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         body;
}

class ControlServerTest : public testing::Test {
 protected:
  void SetUp() override {
    DeviceOptions options;
    options.disksize_bytes = 1U << 20;
    auto created = Device::create(options);
    ASSERT_TRUE(created.has_value()) << created.error().message;
    device_ = std::move(*created);
    DeviceEntry entry;
    entry.device = device_.get();
    entry.name = "my disk";
    ASSERT_TRUE(directory_.add(std::move(entry)).has_value());
    auto bound = ControlServer::bind(path_);
    ASSERT_TRUE(bound.has_value()) << bound.error().message;
    server_ = std::move(*bound);
  }

  void serve() { ASSERT_TRUE(server_->serve(api_).has_value()); }

  const test::TemporaryFolder folder_;
  const std::string path_ = folder_ / "control.sock";
  std::unique_ptr<Device> device_;
  DeviceDirectory directory_;
  Api api_{directory_};
  std::unique_ptr<ControlServer> server_;
};

TEST_F(ControlServerTest, answers_the_client) {
  serve();
  const auto answer = get(path_, "/v1/devices");
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_EQ(json::parse(*answer).at(0).at("name"), "my disk");
}

TEST_F(ControlServerTest, client_tells_the_server_s_message) {
  serve();
  const auto answer = get(path_, "/v1/devices/nobody");
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code, Errc::not_found);
  EXPECT_NE(answer.error().message.find("\"nobody\""), std::string::npos);
}

TEST_F(ControlServerTest, names_are_percent_decoded) {
  serve();
  const auto answer = get(path_, "/v1/devices/my%20disk");
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_EQ(json::parse(*answer).at("name"), "my disk");
}

TEST_F(ControlServerTest, patch_reaches_the_device) {
  serve();
  const std::string answer =
      raw_exchange(path_, request_of("PATCH", "/v1/devices/my%20disk", R"({"mem_limit":"1M"})"));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer;
  EXPECT_EQ(device_->stats().mem_limit, 1U << 20);
}

TEST_F(ControlServerTest, other_methods_get_a_json_error) {
  serve();
  const std::string answer = raw_exchange(path_, request_of("POST", "/v1/devices", "{}"));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 405")) << answer;
  EXPECT_NE(answer.find("\"ENOTSUP\""), std::string::npos);
}

TEST_F(ControlServerTest, a_body_over_64_KiB_is_refused) {
  serve();
  const std::string answer = raw_exchange(
      path_, request_of("PATCH", "/v1/devices/my%20disk", std::string(64 * 1024 + 1, ' ')));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 413")) << answer;
  EXPECT_NE(answer.find("\"E2BIG\""), std::string::npos);
}

TEST_F(ControlServerTest, survives_what_is_not_HTTP) {
  serve();
  raw_exchange(path_, "\x16\x03\x01 nonsense\r\n\r\n");
  raw_exchange(path_, "PATCH /" + std::string(8000, 'a') + " HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(get(path_, "/v1/version").has_value());
}

TEST_F(ControlServerTest, the_socket_is_its_owner_s_only) {
  struct stat found {};
  ASSERT_EQ(::stat(path_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777U, 0600U);
}

TEST_F(ControlServerTest, a_second_server_at_the_path_is_refused_even_before_it_serves) {
  auto second = ControlServer::bind(path_);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, Errc::busy);
  serve();
  second = ControlServer::bind(path_);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, Errc::busy);
  EXPECT_TRUE(get(path_, "/v1/version").has_value());
}

TEST_F(ControlServerTest, removes_its_socket_whether_or_not_it_served) {
  ASSERT_TRUE(std::filesystem::exists(path_));
  server_.reset();
  EXPECT_FALSE(std::filesystem::exists(path_));
  auto bound = ControlServer::bind(path_);
  ASSERT_TRUE(bound.has_value());
  ASSERT_TRUE((*bound)->serve(api_).has_value());
  bound->reset();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST(ControlClient, without_a_server_names_the_path_and_how_to_start_one) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "control.sock";
  const auto answer = get(path, "/v1/devices");
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code, Errc::not_found);
  EXPECT_NE(answer.error().message.find(path), std::string::npos);
  EXPECT_NE(answer.error().message.find("uzram serve"), std::string::npos);
}

}  // namespace
}  // namespace uzram::control
