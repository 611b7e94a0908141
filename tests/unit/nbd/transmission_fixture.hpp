// A device, two exports of it and a client in transmission, for the tests of sessions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "uzram/device.hpp"

#include "unit/nbd/session_driver.hpp"
#include "unit/nbd/wire.hpp"

namespace uzram::nbd {

using wire::pattern;

class TransmissionTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kSize = 64U << 20;

  TransmissionTest() { make_device(kSize); }

  // The exports: "disk" with blocks of 4096, "fine" with blocks of 512, "fixed" read-only.
  void make_device(std::uint64_t size) {
    driver_.reset();
    DeviceOptions options;
    options.disksize_bytes = size;
    Result<std::unique_ptr<Device>> device = Device::create(options);
    ASSERT_TRUE(device) << device.error().message;
    device_ = std::move(*device);
    Result<ExportTable> table = ExportTable::make({Export{"disk", "", device_.get(), false, 4096},
                                                   Export{"fine", "", device_.get(), false, 512},
                                                   Export{"fixed", "", device_.get(), true, 4096}});
    ASSERT_TRUE(table) << table.error().message;
    exports_ = std::move(*table);
  }

  // Through the handshake, with whatever the arguments say.
  void connect(const std::string& name = "disk", bool structured = true, bool context = true,
               std::size_t max_reply_bytes = 2U << 20) {
    driver_.emplace(exports_, 0U, max_reply_bytes);
    driver_->feed(wire::client_flags());
    if (structured) {
      driver_->feed(wire::option(Option::structured_reply));
    }
    if (structured && context) {
      driver_->feed(
          wire::option(Option::set_meta_context, wire::context_data(name, {"base:allocation"})));
    }
    driver_->feed(wire::go(name));
    ASSERT_NE(driver_->session().device(), nullptr);
    driver_->take_output();
    asked_.clear();
  }

  // Queues a request; send() sends what is queued.
  std::uint64_t ask(Command command, std::uint64_t offset, std::uint32_t length,
                    std::uint16_t flags = 0) {
    const std::uint64_t cookie = ++last_cookie_;
    asked_[cookie] = wire::Asked{command, offset, length};
    outgoing_.add(wire::request(command, cookie, offset, length, flags));
    return cookie;
  }
  std::uint64_t ask_write(std::uint64_t offset, std::span<const std::byte> data,
                          std::uint16_t flags = 0) {
    const std::uint64_t cookie =
        ask(Command::write, offset, static_cast<std::uint32_t>(data.size()), flags);
    outgoing_.add(data);
    return cookie;
  }

  // Sends what is queued in pieces of at most `piece` and returns the replies, which must be
  // well-formed and answer what was asked.
  std::vector<wire::Reply> send(std::size_t piece = ~std::size_t{0}) {
    const wire::Bytes outgoing = std::exchange(outgoing_, {});
    driver_->feed(outgoing, piece);
    return replies();
  }
  std::vector<wire::Reply> replies() {
    std::optional<std::vector<wire::Reply>> taken =
        wire::take_replies(driver_->take_output(), asked_);
    EXPECT_TRUE(taken) << "replies that are not well-formed";
    if (!taken) {
      return {};
    }
    for (const wire::Reply& reply : *taken) {
      asked_.erase(reply.cookie);
    }
    return std::move(*taken);
  }
  // Sends what is queued and returns the error of the only reply.
  WireError sole_error() {
    const std::vector<wire::Reply> got = send();
    EXPECT_EQ(got.size(), 1U);
    return got.empty() ? WireError{} : got.front().error;
  }
  WireError error_of(Command command, std::uint64_t offset, std::uint32_t length,
                     std::uint16_t flags = 0) {
    ask(command, offset, length, flags);
    return sole_error();
  }

  [[nodiscard]] bool alive() { return error_of(Command::flush, 0, 0) == WireError::ok; }
  [[nodiscard]] std::vector<std::byte> content(std::uint64_t offset, std::size_t length) {
    std::vector<std::byte> bytes(length);
    EXPECT_EQ(device_->read(offset, bytes), Errc::ok);
    return bytes;
  }

  std::unique_ptr<Device> device_;
  ExportTable exports_;
  std::optional<SessionDriver> driver_;
  wire::Bytes outgoing_;
  std::map<std::uint64_t, wire::Asked> asked_;
  std::uint64_t last_cookie_ = 0;
};

}  // namespace uzram::nbd
