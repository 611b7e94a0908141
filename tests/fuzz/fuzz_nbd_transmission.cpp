// Whatever a client sends after the handshake, the session answers in well-formed replies, each
// belonging to a request and no request twice, and a device is left that can be read.
//
// Input: a byte of options (structured replies, context, export, how many bytes arrive at once, how
// many are taken at once, whether some requests fail), then what a client sends. Cookies are
// numbered anew.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "uzram/device.hpp"

#include "frontend/nbd/session.hpp"
#include "unit/nbd/session_driver.hpp"
#include "unit/nbd/wire.hpp"

namespace {

using uzram::Device;
using uzram::Errc;
using uzram::nbd::Chunk;
using uzram::nbd::Command;
using uzram::nbd::ExportTable;
using uzram::nbd::SessionDriver;
using uzram::nbd::WireError;
namespace wire = uzram::nbd::wire;

constexpr std::uint64_t kSize = 1U << 20;

void require(bool held) {
  if (!held) {
    std::abort();
  }
}

struct Fixture {
  Fixture() {
    uzram::DeviceOptions options;
    options.disksize_bytes = kSize;
    auto made = Device::create(options);
    require(made.has_value());
    device = std::move(*made);
    auto table = ExportTable::make({{"disk", "", device.get(), false, 4096},
                                    {"fine", "", device.get(), false, 512},
                                    {"fixed", "", device.get(), true, 4096}});
    require(table.has_value());
    exports = std::move(*table);
  }
  std::unique_ptr<Device> device;
  ExportTable exports;
};

// The requests in a client's bytes, found independently of the code under test. Cookies are made
// unique in `bytes` itself, so that replies can be told apart.
std::map<std::uint64_t, wire::Asked> number_requests(std::vector<std::byte>& bytes) {
  std::map<std::uint64_t, wire::Asked> asked;
  std::size_t at = 0;
  while (bytes.size() - at >= uzram::nbd::kRequestHeaderBytes) {
    std::byte* const header = bytes.data() + at;
    if (uzram::nbd::load_be<std::uint32_t>(header) != uzram::nbd::kRequestMagic) {
      break;
    }
    const std::uint64_t cookie = asked.size() + 1;
    uzram::nbd::store_be(header + 8, cookie);
    const auto command = static_cast<Command>(uzram::nbd::load_be<std::uint16_t>(header + 6));
    const auto length = uzram::nbd::load_be<std::uint32_t>(header + 24);
    if (command == Command::disc) {
      break;
    }
    asked[cookie] = {command, uzram::nbd::load_be<std::uint64_t>(header + 16), length};
    at += uzram::nbd::kRequestHeaderBytes;
    if (command == Command::write) {
      if (length > bytes.size() - at) {
        break;
      }
      at += length;
    }
  }
  return asked;
}

// A successful reply says all that was asked.
void check(const wire::Reply& reply, const wire::Asked& asked) {
  if (reply.error != WireError::ok) {
    return;
  }
  require(asked.command <= Command::block_status);
  require(asked.command == Command::flush ||
          (asked.offset < kSize && asked.length <= kSize - asked.offset && asked.length != 0));
  if (asked.command == Command::read) {
    require(reply.data.size() == asked.length);
    std::uint64_t covered = 0;
    for (const wire::ReplyChunk& chunk : reply.chunks) {
      covered += chunk.type == Chunk::offset_hole
                     ? uzram::nbd::load_be<std::uint32_t>(chunk.payload.data() + 8)
                     : chunk.payload.size() - 8;
    }
    require(reply.chunks.empty() || covered == asked.length);
  }
  if (asked.command == Command::block_status) {
    std::uint64_t covered = 0;
    for (std::size_t at = 4; at < reply.chunks.at(0).payload.size(); at += 8) {
      covered += uzram::nbd::load_be<std::uint32_t>(reply.chunks[0].payload.data() + at);
    }
    require(covered != 0 && covered <= asked.length);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(  // NOLINT(readability-identifier-naming)
    const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  static Fixture fixture;
  require(fixture.device->discard(0, kSize) == Errc::ok);

  const unsigned choice = data[0];
  constexpr std::array<const char*, 4> kNames = {"disk", "fine", "fixed", "disk"};
  const std::string name = kNames.at(choice & 3U);
  SessionDriver driver(fixture.exports, 0, 64U << 10);
  wire::Bytes hello = wire::client_flags();
  if ((choice & 4U) != 0) {
    hello.add(wire::option(uzram::nbd::Option::structured_reply));
    if ((choice & 8U) != 0) {
      hello.add(wire::option(uzram::nbd::Option::set_meta_context,
                             wire::context_data(name, {"base:allocation"})));
    }
  }
  driver.feed(hello.add(wire::go(name)));
  require(driver.session().device() == fixture.device.get());
  driver.take_output();

  const auto input = std::as_bytes(std::span(data, size)).subspan(1);
  std::vector<std::byte> bytes(input.begin(), input.end());
  const std::map<std::uint64_t, wire::Asked> asked = number_requests(bytes);
  driver.send_piece = (choice & 16U) != 0 ? 1000 : ~std::size_t{0};
  if ((choice & 64U) != 0) {
    driver.fault = [](const uzram::Request& request) {
      return request.offset / 4096 % 3 == 1 ? Errc::corrupt : Errc::ok;
    };
  }
  driver.feed(bytes, (choice & 32U) != 0 ? 7 : ~std::size_t{0});
  driver.session().end_input();
  driver.run();
  require(driver.session().over());

  const auto replies = wire::take_replies(driver.take_output(), asked);
  require(replies.has_value());
  require(replies->size() <= asked.size());
  for (const wire::Reply& reply : *replies) {
    check(reply, asked.at(reply.cookie));
  }
  std::vector<std::byte> all(kSize);
  require(fixture.device->read(0, all) == Errc::ok);
  return 0;
}
