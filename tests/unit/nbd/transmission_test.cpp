// What requests are answered with.
#include "frontend/nbd/transmission.hpp"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "unit/nbd/transmission_fixture.hpp"

namespace uzram::nbd {
namespace {

constexpr std::uint32_t kMaxPayload = 32U << 20;

struct Descriptor {
  std::uint32_t length = 0;
  std::uint32_t flags = 0;
  bool operator==(const Descriptor&) const = default;
};

std::vector<Descriptor> descriptors(const wire::Reply& reply) {
  std::vector<Descriptor> found;
  for (const wire::ReplyChunk& chunk : reply.chunks) {
    for (std::size_t at = 4; at < chunk.payload.size(); at += 8) {
      found.push_back({load_be<std::uint32_t>(chunk.payload.data() + at),
                       load_be<std::uint32_t>(chunk.payload.data() + at + 4)});
    }
  }
  return found;
}

TEST_F(TransmissionTest, a_simple_read_returns_what_was_written) {
  connect("disk", false);
  const std::vector<std::byte> data = pattern(12288, 1);
  ask_write(8192, data);
  EXPECT_EQ(sole_error(), WireError::ok);
  ask(Command::read, 4096, 20480);
  const std::vector<wire::Reply> got = send();
  ASSERT_EQ(got.size(), 1U);
  EXPECT_FALSE(got[0].structured);
  ASSERT_EQ(got[0].data.size(), 20480U);
  EXPECT_TRUE(std::equal(data.begin(), data.end(), got[0].data.begin() + 4096));
  EXPECT_EQ(got[0].data[0], std::byte{0});
  EXPECT_EQ(got[0].data[16384], std::byte{0});
}

TEST_F(TransmissionTest, a_structured_read_sends_holes_as_holes) {
  connect();
  const std::vector<std::byte> data = pattern(8192, 2);
  ask_write(8192, data);
  send();
  ask(Command::read, 0, 32768);
  const std::vector<wire::Reply> got = send();
  ASSERT_EQ(got.size(), 1U);
  ASSERT_EQ(got[0].chunks.size(), 3U);
  EXPECT_EQ(got[0].chunks[0].type, Chunk::offset_hole);
  EXPECT_EQ(got[0].chunks[1].type, Chunk::offset_data);
  EXPECT_EQ(got[0].chunks[2].type, Chunk::offset_hole);
  EXPECT_EQ(got[0].data, content(0, 32768));
}

TEST_F(TransmissionTest, pages_kept_allocated_and_zero_are_read_as_holes_too) {
  connect();
  EXPECT_EQ(error_of(Command::write_zeroes, 0, 8192, kCommandNoHole), WireError::ok);
  ask(Command::read, 0, 16384);
  const std::vector<wire::Reply> got = send();
  ASSERT_EQ(got.size(), 1U);
  ASSERT_EQ(got[0].chunks.size(), 1U);
  EXPECT_EQ(got[0].chunks[0].type, Chunk::offset_hole);
}

TEST_F(TransmissionTest, df_gets_one_chunk_whatever_the_holes) {
  connect();
  ask_write(4096, pattern(4096, 3));
  send();
  ask(Command::read, 0, 16384, kCommandDf);
  ask(Command::read, 8192, 8192, kCommandDf);
  const std::vector<wire::Reply> got = send();
  ASSERT_EQ(got.size(), 2U);
  ASSERT_EQ(got[0].chunks.size(), 1U);
  EXPECT_EQ(got[0].chunks[0].type, Chunk::offset_data);
  EXPECT_EQ(got[0].data, content(0, 16384));
  ASSERT_EQ(got[1].chunks.size(), 1U);
  EXPECT_EQ(got[1].chunks[0].type, Chunk::offset_hole);
}

TEST_F(TransmissionTest, a_read_of_many_holes_has_at_most_64_chunks_and_is_right) {
  connect();
  constexpr std::uint32_t kPages = 400;
  for (std::uint32_t page = 0; page < kPages; page += 2) {
    ask_write(std::uint64_t{page} * 4096, pattern(4096, page));
  }
  send();
  ask(Command::read, 0, kPages * 4096);
  const std::vector<wire::Reply> got = send();
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].chunks.size(), 64U);
  EXPECT_EQ(got[0].data, content(0, kPages * 4096));
}

TEST_F(TransmissionTest, df_without_structured_replies_is_einval) {
  connect("disk", false);
  EXPECT_EQ(error_of(Command::read, 0, 4096, kCommandDf), WireError::einval);
  EXPECT_TRUE(alive());
}

TEST_F(TransmissionTest, errors_of_read_and_block_status_are_structured_once_agreed_on) {
  connect();
  ask(Command::read, kSize, 4096);
  ask(Command::block_status, kSize, 4096);
  ask(Command::trim, kSize, 4096);
  const std::vector<wire::Reply> got = send();
  ASSERT_EQ(got.size(), 3U);
  EXPECT_TRUE(got[0].structured);
  EXPECT_TRUE(got[1].structured);
  EXPECT_FALSE(got[2].structured);
}

TEST_F(TransmissionTest, requests_refused_for_their_range_are_counted_as_invalid_io) {
  connect();
  const std::uint64_t before = device_->stats().invalid_io;
  EXPECT_EQ(error_of(Command::read, kSize, 4096), WireError::einval);
  EXPECT_EQ(error_of(Command::trim, 100, 4096), WireError::einval);
  EXPECT_EQ(error_of(Command::read, 0, 4096), WireError::ok);
  EXPECT_EQ(device_->stats().invalid_io, before + 2);
}

TEST_F(TransmissionTest, unaligned_requests_are_einval_and_the_connection_lives) {
  connect();
  for (const Command command : {Command::read, Command::trim, Command::write_zeroes, Command::cache,
                                Command::block_status}) {
    EXPECT_EQ(error_of(command, 512, 4096), WireError::einval);
    EXPECT_EQ(error_of(command, 0, 4095), WireError::einval);
    EXPECT_EQ(error_of(command, 4096, 0), WireError::einval);
  }
  ask_write(512, pattern(4096, 4));
  EXPECT_EQ(sole_error(), WireError::einval);
  EXPECT_EQ(content(0, 8192), std::vector<std::byte>(8192));
  EXPECT_TRUE(alive());
}

TEST_F(TransmissionTest, an_export_with_blocks_of_512_takes_sectors) {
  connect("fine");
  const std::vector<std::byte> data = pattern(512, 5);
  ask_write(512, data);
  EXPECT_EQ(sole_error(), WireError::ok);
  EXPECT_EQ(content(512, 512), data);
  ask(Command::read, 512, 512);
  const std::vector<wire::Reply> got = send();
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].data, data);
  EXPECT_EQ(error_of(Command::read, 256, 512), WireError::einval);
}

TEST_F(TransmissionTest, beyond_the_end_is_enospc_to_writers_and_einval_to_others) {
  connect();
  ask_write(kSize - 4096, pattern(8192, 6));
  EXPECT_EQ(sole_error(), WireError::enospc);
  EXPECT_EQ(error_of(Command::write_zeroes, kSize, 4096), WireError::enospc);
  EXPECT_EQ(error_of(Command::read, kSize - 4096, 8192), WireError::einval);
  EXPECT_EQ(error_of(Command::trim, kSize, 4096), WireError::einval);
  EXPECT_EQ(error_of(Command::cache, kSize, 4096), WireError::einval);
  EXPECT_EQ(error_of(Command::block_status, kSize, 4096), WireError::einval);
  EXPECT_EQ(content(kSize - 4096, 4096), std::vector<std::byte>(4096));
  EXPECT_TRUE(alive());
}

TEST_F(TransmissionTest, offsets_and_lengths_that_overflow_64_bits_are_beyond_the_end) {
  connect();
  constexpr std::uint64_t kLast = ~std::uint64_t{0} - 4095;
  for (const std::uint64_t offset : {kLast, std::uint64_t{1} << 63, kLast - 8192}) {
    EXPECT_EQ(error_of(Command::read, offset, 8192), WireError::einval);
    EXPECT_EQ(error_of(Command::trim, offset, 0xfffff000), WireError::einval);
    EXPECT_EQ(error_of(Command::write_zeroes, offset, 0xfffff000), WireError::enospc);
    EXPECT_EQ(error_of(Command::block_status, offset, 0xfffff000), WireError::einval);
    ask_write(offset, pattern(8192, 7));
    EXPECT_EQ(sole_error(), WireError::enospc);
  }
  EXPECT_TRUE(alive());
}

TEST_F(TransmissionTest, lengths_near_32_bits_neither_wrap_nor_trip_anything) {
  make_device(std::uint64_t{8} << 30);
  connect();
  for (const std::uint32_t length : {0xffffffffU, 0xfffffe00U, 0xfffff001U}) {
    EXPECT_EQ(error_of(Command::read, 4096, length), WireError::einval);
    EXPECT_EQ(error_of(Command::trim, 4096, length), WireError::einval);
  }
  EXPECT_EQ(error_of(Command::read, 0, 0xfffff000U), WireError::einval);
  EXPECT_EQ(error_of(Command::cache, 0, 0xfffff000U), WireError::ok);
  EXPECT_TRUE(alive());
}

TEST_F(TransmissionTest, trim_and_write_zeroes_may_be_longer_than_any_payload) {
  make_device(std::uint64_t{8} << 30);
  connect();
  ask_write(0xffffe000U, pattern(8192, 8));
  send();
  EXPECT_EQ(error_of(Command::trim, 0, 0xfffff000U), WireError::ok);
  EXPECT_EQ(content(0xffffe000U, 4096), std::vector<std::byte>(4096));
  EXPECT_NE(content(0xfffff000U, 4096), std::vector<std::byte>(4096));
  EXPECT_EQ(error_of(Command::write_zeroes, 4096, 0xfffff000U), WireError::ok);
  EXPECT_EQ(content(0xfffff000U, 4096), std::vector<std::byte>(4096));
}

TEST_F(TransmissionTest, reads_and_writes_of_exactly_32_mib_are_served) {
  for (const bool structured : {false, true}) {
    connect("disk", structured);
    const std::vector<std::byte> data = pattern(kMaxPayload, structured ? 9 : 10);
    ask_write(4096, data);
    EXPECT_EQ(sole_error(), WireError::ok);
    ask(Command::read, 4096, kMaxPayload);
    const std::vector<wire::Reply> got = send();
    ASSERT_EQ(got.size(), 1U);
    EXPECT_TRUE(got[0].data == data);
  }
}

TEST_F(TransmissionTest, a_read_over_32_mib_is_einval_and_the_connection_lives) {
  for (const bool structured : {false, true}) {
    connect("disk", structured);
    EXPECT_EQ(error_of(Command::read, 0, kMaxPayload + 4096), WireError::einval);
    EXPECT_TRUE(alive());
  }
}

TEST_F(TransmissionTest, a_write_over_32_mib_ends_its_connection) {
  connect();
  ask(Command::write, 0, kMaxPayload + 4096);
  EXPECT_TRUE(send().empty());
  EXPECT_TRUE(driver_->session().over());
}

TEST_F(TransmissionTest, a_refused_write_has_its_payload_read_past) {
  connect("fixed");
  for (const std::size_t length : {std::size_t{4096}, std::size_t{1} << 20}) {
    ask_write(0, pattern(length, 11));
    ask(Command::read, 0, 4096);
    const std::vector<wire::Reply> got = send(10'000);
    ASSERT_EQ(got.size(), 2U);
    EXPECT_EQ(got[0].error, WireError::eperm);
    EXPECT_EQ(got[1].error, WireError::ok);
  }
  EXPECT_EQ(content(0, 4096), std::vector<std::byte>(4096));
}

TEST_F(TransmissionTest, a_refused_write_is_answered_after_its_payload_only) {
  connect("fixed");
  ask_write(0, pattern(1U << 20, 21));
  const wire::Bytes write = std::exchange(outgoing_, {});
  driver_->feed(write.view().first(write.size() - 1));
  EXPECT_TRUE(driver_->take_output().empty());
  driver_->feed(write.view().last(1));
  EXPECT_EQ(replies().size(), 1U);
}

TEST_F(TransmissionTest, a_read_only_export_refuses_all_that_writes_with_eperm) {
  connect("fixed");
  ask_write(0, pattern(4096, 12));
  EXPECT_EQ(sole_error(), WireError::eperm);
  EXPECT_EQ(error_of(Command::trim, 0, 4096), WireError::eperm);
  EXPECT_EQ(error_of(Command::write_zeroes, 0, 4096), WireError::eperm);
  EXPECT_EQ(error_of(Command::read, 0, 4096), WireError::ok);
  EXPECT_EQ(error_of(Command::flush, 0, 0), WireError::ok);
}

TEST_F(TransmissionTest, unknown_commands_and_flags_are_einval_and_the_connection_lives) {
  connect();
  EXPECT_EQ(error_of(static_cast<Command>(8), 0, 4096), WireError::einval);
  EXPECT_EQ(error_of(static_cast<Command>(0xffff), 0, 4096), WireError::einval);
  EXPECT_EQ(error_of(Command::read, 0, 4096, kCommandNoHole), WireError::einval);
  EXPECT_EQ(error_of(Command::flush, 0, 0, 1U << 15), WireError::einval);
  ask_write(0, pattern(4096, 13), kCommandFastZero);
  EXPECT_EQ(sole_error(), WireError::einval);
  EXPECT_TRUE(alive());
}

TEST_F(TransmissionTest, fua_is_taken_with_every_command) {
  connect();
  ask_write(0, pattern(4096, 14), kCommandFua);
  EXPECT_EQ(sole_error(), WireError::ok);
  EXPECT_EQ(error_of(Command::trim, 0, 4096, kCommandFua), WireError::ok);
  EXPECT_EQ(error_of(Command::write_zeroes, 0, 4096, kCommandFua | kCommandFastZero),
            WireError::ok);
  EXPECT_EQ(error_of(Command::read, 0, 4096, kCommandFua), WireError::ok);
}

TEST_F(TransmissionTest, zeroes_with_no_hole_stay_allocated_and_without_do_not) {
  connect();
  ask_write(0, pattern(16384, 15));
  send();
  EXPECT_EQ(error_of(Command::write_zeroes, 0, 4096, kCommandNoHole), WireError::ok);
  EXPECT_EQ(error_of(Command::write_zeroes, 4096, 4096), WireError::ok);
  EXPECT_EQ(error_of(Command::trim, 8192, 4096), WireError::ok);
  ask(Command::block_status, 0, 16384);
  const std::vector<wire::Reply> got = send();
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(
      descriptors(got[0]),
      (std::vector<Descriptor>{{4096, kStateZero}, {8192, kStateHole | kStateZero}, {4096, 0}}));
}

TEST_F(TransmissionTest, block_status_of_the_whole_device_is_one_answer_of_merged_neighbours) {
  make_device(std::uint64_t{3} << 30);
  connect();
  ask_write(1U << 30, pattern(1U << 20, 16));
  send();
  ask(Command::block_status, 0, 3U << 30);
  const std::vector<wire::Reply> got = send();
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(descriptors(got[0]),
            (std::vector<Descriptor>{{1U << 30, kStateHole | kStateZero},
                                     {1U << 20, 0},
                                     {(2U << 30) - (1U << 20), kStateHole | kStateZero}}));
}

TEST_F(TransmissionTest, block_status_is_capped_at_1024_descriptors) {
  connect();
  for (std::uint32_t page = 0; page < 4096; page += 2) {
    ask_write(std::uint64_t{page} * 4096, pattern(4096, page));
  }
  send();
  ask(Command::block_status, 0, kSize);
  const std::vector<wire::Reply> got = send();
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(descriptors(got[0]).size(), 1024U);
  EXPECT_EQ(descriptors(got[0]).back(), (Descriptor{4096, kStateHole | kStateZero}));
}

TEST_F(TransmissionTest, req_one_gets_one_descriptor_no_longer_than_the_request) {
  connect();
  ask_write(0, pattern(16384, 17));
  send();
  ask(Command::block_status, 0, 8192, kCommandReqOne);
  ask(Command::block_status, 0, kSize, kCommandReqOne);
  const std::vector<wire::Reply> got = send();
  ASSERT_EQ(got.size(), 2U);
  EXPECT_EQ(descriptors(got[0]), (std::vector<Descriptor>{{8192, 0}}));
  EXPECT_EQ(descriptors(got[1]), (std::vector<Descriptor>{{16384, 0}}));
}

TEST_F(TransmissionTest, block_status_without_a_context_is_einval) {
  connect("disk", true, false);
  EXPECT_EQ(error_of(Command::block_status, 0, 4096), WireError::einval);
  connect("disk", false);
  EXPECT_EQ(error_of(Command::block_status, 0, 4096), WireError::einval);
  EXPECT_TRUE(alive());
}

TEST_F(TransmissionTest, a_wrong_request_magic_ends_it_after_what_was_asked_before) {
  connect();
  ask(Command::read, 0, 4096);
  outgoing_.add(std::uint32_t{0x12345678}).add(std::string(60, 'x'));
  EXPECT_EQ(send().size(), 1U);
  EXPECT_TRUE(driver_->session().over());
}

TEST_F(TransmissionTest, disc_ends_it_after_what_was_asked_before_and_nothing_after) {
  connect();
  ask(Command::read, 0, 4096);
  outgoing_.add(wire::request(Command::disc, 0, 0, 0));
  ask_write(0, pattern(4096, 18));
  EXPECT_EQ(send().size(), 1U);
  EXPECT_TRUE(driver_->session().over());
  EXPECT_EQ(content(0, 4096), std::vector<std::byte>(4096));
}

// Errors of the device.

TEST_F(TransmissionTest, a_full_store_is_enospc_and_other_requests_of_the_batch_succeed) {
  connect();
  driver_->fault = [](const Request& request) {
    return request.op == Op::write && request.offset == 4096 ? Errc::no_space : Errc::ok;
  };
  for (std::uint64_t page = 0; page < 3; ++page) {
    ask_write(page * 4096, pattern(4096, 19));
  }
  const std::vector<wire::Reply> got = send();
  ASSERT_EQ(got.size(), 3U);
  EXPECT_EQ(got[0].error, WireError::ok);
  EXPECT_EQ(got[1].error, WireError::enospc);
  EXPECT_EQ(got[2].error, WireError::ok);
}

TEST_F(TransmissionTest, a_failed_simple_read_sends_no_data_and_leaves_its_neighbours_whole) {
  connect("disk", false);
  const std::vector<std::byte> data = pattern(12288, 20);
  ask_write(0, data);
  send();
  driver_->fault = [](const Request& request) {
    return request.op == Op::read && request.offset == 4096 ? Errc::corrupt : Errc::ok;
  };
  ask(Command::read, 0, 4096);
  ask(Command::read, 4096, 4096);
  ask(Command::cache, 0, 4096);
  ask(Command::read, 8192, 4096);
  const std::vector<wire::Reply> got = send();
  ASSERT_EQ(got.size(), 4U);
  EXPECT_TRUE(std::equal(got[0].data.begin(), got[0].data.end(), data.begin()));
  EXPECT_EQ(got[1].error, WireError::eio);
  EXPECT_TRUE(got[1].data.empty());
  EXPECT_EQ(got[2].error, WireError::ok);
  ASSERT_EQ(got[3].data.size(), 4096U);
  EXPECT_TRUE(std::equal(got[3].data.begin(), got[3].data.end(), data.begin() + 8192));
}

TEST_F(TransmissionTest, failed_chunks_of_a_structured_read_become_errors_at_their_offset) {
  connect();
  for (const std::uint64_t page : {0U, 2U, 4U}) {
    ask_write(page * 4096, pattern(4096, static_cast<unsigned>(page)));
  }
  send();
  // A middle chunk and the last one, which carries the flag that ends the reply.
  driver_->fault = [](const Request& request) {
    return request.op == Op::read && request.offset != 0 ? Errc::corrupt : Errc::ok;
  };
  ask(Command::read, 0, 5 * 4096);
  ask(Command::flush, 0, 0);
  const std::vector<wire::Reply> got = send();
  ASSERT_EQ(got.size(), 2U);
  ASSERT_EQ(got[0].chunks.size(), 5U);
  EXPECT_EQ(got[0].chunks[0].type, Chunk::offset_data);
  EXPECT_EQ(got[0].chunks[1].type, Chunk::offset_hole);
  ASSERT_EQ(got[0].chunks[2].type, Chunk::error_offset);
  EXPECT_EQ(load_be<std::uint64_t>(got[0].chunks[2].payload.data() + 6), 8192U);
  EXPECT_EQ(got[0].chunks[4].type, Chunk::error_offset);
  EXPECT_TRUE(got[0].chunks[4].done);
  EXPECT_EQ(got[0].error, WireError::eio);
  EXPECT_EQ(got[1].error, WireError::ok);
}

}  // namespace
}  // namespace uzram::nbd
