#include "port_exercise.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace uzram::bench::test {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kSpace = std::size_t{4} << 20;

// Requests that cover the space: `pages`[i % size] pages each, one after the other.
std::vector<Request> covering(Op op, const std::vector<std::size_t>& pages, std::byte* buffer) {
  std::vector<Request> requests;
  std::size_t offset = 0;
  while (offset < kSpace) {
    const std::size_t length =
        std::min(pages[requests.size() % pages.size()] * kPage, kSpace - offset);
    requests.push_back(make_request(op, offset, length, buffer + offset));
    offset += length;
  }
  return requests;
}

// Keeps up to `iodepth` requests in flight, in batches.
void carry_out(Port& port, std::vector<Request>& requests, std::uint32_t iodepth) {
  std::size_t next = 0;
  std::size_t reaped = 0;
  std::uint32_t in_flight = 0;
  while (reaped < requests.size()) {
    std::vector<Request*> batch;
    for (; in_flight < iodepth && next < requests.size(); ++in_flight) {
      batch.push_back(&requests[next++]);
    }
    port.submit(batch);
    Request* const done = port.reap();
    ASSERT_NE(done, nullptr);
    EXPECT_EQ(done->status, Errc::ok) << port.failure();
    ++reaped;
    --in_flight;
  }
  EXPECT_FALSE(port.has_completed());
  EXPECT_EQ(port.reap(), nullptr);
}

}  // namespace

AlignedBytes random_bytes(std::size_t size, std::uint64_t seed) {
  AlignedBytes bytes(static_cast<std::byte*>(std::aligned_alloc(kPage, size)), &std::free);
  Random random(seed);
  for (std::size_t i = 0; i < size; ++i) {
    bytes.get()[i] = static_cast<std::byte>(random.below(256));
  }
  return bytes;
}

Request make_request(Op op, std::uint64_t offset, std::uint64_t length, std::byte* buffer) {
  Request request;
  request.op = op;
  // Each must be set by the port.
  request.status = Errc::corrupt;
  request.offset = offset;
  request.length = length;
  request.buffer = buffer;
  return request;
}

void check_round_trip(Target& target, std::uint32_t iodepth) {
  auto port = target.open_port(iodepth);
  ASSERT_TRUE(port) << port.error().message;
  const AlignedBytes written = random_bytes(kSpace, iodepth);
  const AlignedBytes read = random_bytes(kSpace, iodepth + 1);
  auto writes = covering(Op::write, {1, 16, 3, 64, 1}, written.get());
  carry_out(**port, writes, iodepth);
  Request flush = make_request(Op::flush, 0, 0, nullptr);
  (*port)->execute(flush);
  EXPECT_EQ(flush.status, Errc::ok) << (*port)->failure();
  auto reads = covering(Op::read, {7, 1, 128}, read.get());
  carry_out(**port, reads, iodepth);
  EXPECT_EQ(std::memcmp(written.get(), read.get(), kSpace), 0);
  EXPECT_EQ((*port)->failure(), "");
  // One at a time as well.
  Request single = make_request(Op::write, kPage, kPage, written.get());
  (*port)->execute(single);
  EXPECT_EQ(single.status, Errc::ok);
  single = make_request(Op::read, kPage, kPage, read.get());
  (*port)->execute(single);
  EXPECT_EQ(single.status, Errc::ok);
  EXPECT_EQ(std::memcmp(written.get(), read.get(), kPage), 0);
  EXPECT_EQ((*port)->reap(), nullptr);
}

}  // namespace uzram::bench::test
