// Buffers, batches and back pressure of a connection.
#include "frontend/nbd/session.hpp"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "unit/nbd/transmission_fixture.hpp"

namespace uzram::nbd {
namespace {

using SessionTest = TransmissionTest;

TEST_F(SessionTest, has_no_device_before_an_export_is_chosen) {
  SessionDriver driver(exports_);
  ASSERT_TRUE(driver.greeted());
  driver.feed(wire::client_flags());
  driver.feed(wire::option(Option::info, wire::info_data("disk")));
  driver.feed(wire::option(Option::list));
  EXPECT_EQ(driver.session().device(), nullptr);
  EXPECT_TRUE(driver.session().in_handshake());
  driver.feed(wire::go("disk"));
  EXPECT_EQ(driver.session().device(), device_.get());
}

TEST_F(SessionTest, takes_a_whole_conversation_one_byte_at_a_time) {
  driver_.emplace(exports_);
  const std::vector<std::byte> data = pattern(4096, 1);
  wire::Bytes all = wire::client_flags();
  all.add(wire::option(Option::structured_reply)).add(wire::go("disk"));
  driver_->feed(all, 1);
  driver_->take_output();
  ask_write(4096, data);
  ask(Command::read, 4096, 4096);
  const std::vector<wire::Reply> got = send(1);
  ASSERT_EQ(got.size(), 2U);
  EXPECT_EQ(got[1].data, data);
}

TEST_F(SessionTest, requests_that_follow_go_at_once_are_answered) {
  driver_.emplace(exports_);
  wire::Bytes all = wire::client_flags();
  all.add(wire::go("disk")).add(wire::request(Command::flush, 7, 0, 0));
  driver_->feed(all);
  const std::vector<std::byte> output = driver_->take_output();
  ASSERT_GE(output.size(), kSimpleReplyBytes);
  const auto last = std::span(output).last(kSimpleReplyBytes);
  EXPECT_EQ(load_be<std::uint32_t>(last.data()), kSimpleReplyMagic);
  EXPECT_EQ(load_be<std::uint64_t>(last.data() + 8), 7U);
}

TEST_F(SessionTest, all_requests_that_arrived_together_are_one_batch) {
  connect("disk", false);
  const std::size_t before = driver_->batches();
  for (std::uint64_t page = 0; page < 40; ++page) {
    ask(Command::read, page * 4096, 4096);
  }
  EXPECT_EQ(send().size(), 40U);
  EXPECT_EQ(driver_->batches() - before, 1U);
  EXPECT_EQ(driver_->largest_batch(), 40U);
}

TEST_F(SessionTest, more_requests_than_a_batch_holds_are_all_answered_in_order) {
  connect("disk", false);
  for (std::uint64_t i = 0; i < 2000; ++i) {
    ask(Command::flush, 0, 0);
  }
  const std::vector<wire::Reply> got = send();
  ASSERT_EQ(got.size(), 2000U);
  for (std::size_t i = 1; i < got.size(); ++i) {
    ASSERT_EQ(got[i].cookie, got[i - 1].cookie + 1);
  }
  EXPECT_LE(driver_->largest_batch(), Transmission::kMaxRequests);
}

TEST_F(SessionTest, what_follows_a_long_discard_does_not_wait_for_it) {
  connect("disk", false);
  driver_->holding_long = true;
  ask(Command::trim, 0, 8U << 20);
  ask(Command::read, 16U << 20, 4096);
  std::vector<wire::Reply> got = send();
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].data.size(), 4096U);
  // Nor does what comes later.
  ask(Command::flush, 0, 0);
  EXPECT_EQ(send().size(), 1U);
  driver_->release_long();
  got = send();
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].error, WireError::ok);
}

TEST_F(SessionTest, more_long_discards_than_are_kept_apart_are_all_answered) {
  connect();
  constexpr std::size_t kAsked = 3 * Transmission::kMaxLong;
  for (std::size_t i = 0; i < kAsked; ++i) {
    ask(i % 2 == 0 ? Command::trim : Command::write_zeroes, 0, 8U << 20);
  }
  std::vector<wire::Reply> got = send();
  ASSERT_EQ(got.size(), kAsked);
  for (const wire::Reply& reply : got) {
    EXPECT_EQ(reply.error, WireError::ok);
  }
}

TEST_F(SessionTest, a_long_discard_that_fails_is_answered_with_its_error) {
  connect();
  driver_->fault = [](const Request&) { return Errc::no_space; };
  EXPECT_EQ(error_of(Command::write_zeroes, 0, 8U << 20, kCommandNoHole), WireError::enospc);
}

TEST_F(SessionTest, a_client_that_leaves_is_over_only_when_its_long_discard_is) {
  connect();
  driver_->holding_long = true;
  ask(Command::trim, 0, 8U << 20);
  ask(Command::disc, 0, 0);
  send();
  EXPECT_FALSE(driver_->session().over());
  driver_->release_long();
  EXPECT_TRUE(driver_->session().over());
}

TEST_F(SessionTest, payloads_of_every_size_arrive_whole_however_they_are_cut) {
  connect();
  constexpr std::size_t kHuge = ~std::size_t{0};
  unsigned seed = 0;
  for (const std::size_t length :
       {std::size_t{4096}, Intake::kInPlaceBytes, Intake::kInPlaceBytes + 4096,
        Intake::kBufferBytes, Intake::kBufferBytes + 4096, std::size_t{3} << 20}) {
    for (const std::size_t piece : {std::size_t{1021}, std::size_t{65536}, kHuge}) {
      const std::vector<std::byte> first = pattern(length, ++seed);
      const std::vector<std::byte> second = pattern(length, ++seed);
      ask_write(0, first);
      ask_write(8U << 20, second);
      ask(Command::flush, 0, 0);
      const std::vector<wire::Reply> got = send(piece);
      ASSERT_EQ(got.size(), 3U) << length << " in pieces of " << piece;
      EXPECT_TRUE(content(0, length) == first) << length << " in pieces of " << piece;
      EXPECT_TRUE(content(8U << 20, length) == second) << length << " in pieces of " << piece;
    }
  }
}

TEST_F(SessionTest, stops_taking_input_while_the_client_takes_no_replies) {
  constexpr std::size_t kLimit = 256U << 10;
  connect("disk", false, false, kLimit);
  driver_->draining_output = false;
  wire::Bytes reads;
  constexpr std::uint64_t kReads = 1000;
  for (std::uint64_t i = 0; i < kReads; ++i) {
    reads.add(wire::request(Command::read, i, 0, 65536));
    asked_[i] = wire::Asked{Command::read, 0, 65536};
  }
  driver_->feed(reads.view().first(28 * 10));
  EXPECT_FALSE(driver_->session().wants_input());
  EXPECT_FALSE(driver_->session().runnable());
  EXPECT_LE(driver_->session().output().size(), kLimit);
  // What was held back is answered as replies are taken, the rest as it is sent.
  driver_->draining_output = true;
  driver_->send_piece = 5000;
  driver_->run();
  EXPECT_EQ(driver_->feed(reads.view().subspan(28 * 10)), 28 * (kReads - 10));
  EXPECT_EQ(replies().size(), kReads);
}

TEST_F(SessionTest, a_read_larger_than_the_limit_of_replies_is_served_alone) {
  connect("disk", true, false, 64U << 10);
  ask_write(0, pattern(1U << 20, 3));
  send();
  for (int i = 0; i < 5; ++i) {
    ask(Command::read, 0, 1U << 20);
    ask(Command::read, 4096, 4096);
  }
  driver_->send_piece = 100'000;
  const std::vector<wire::Reply> got = send();
  ASSERT_EQ(got.size(), 10U);
  for (std::size_t i = 0; i < 10; i += 2) {
    EXPECT_TRUE(got[i].data == content(0, 1U << 20));
    EXPECT_TRUE(got[i + 1].data == content(4096, 4096));
  }
}

TEST_F(SessionTest, a_client_that_sends_no_more_is_still_answered) {
  connect("disk", false, false, 64U << 10);
  driver_->draining_output = false;
  for (int i = 0; i < 20; ++i) {
    ask(Command::read, 0, 32768);
  }
  driver_->feed(std::exchange(outgoing_, {}));
  driver_->session().end_input();
  EXPECT_FALSE(driver_->session().over());
  driver_->draining_output = true;
  driver_->run();
  EXPECT_EQ(replies().size(), 20U);
  EXPECT_TRUE(driver_->session().over());
}

TEST_F(SessionTest, an_end_in_the_middle_of_a_request_is_over_at_once) {
  for (const std::size_t sent : {std::size_t{5}, std::size_t{28}, std::size_t{100'000}}) {
    connect();
    const wire::Bytes write = wire::write_request(1, 0, pattern(200'000 / 4096 * 4096, 4));
    EXPECT_EQ(driver_->feed(write.view().first(sent)), sent);
    driver_->session().end_input();
    EXPECT_TRUE(driver_->session().over());
  }
  EXPECT_EQ(content(0, 4096), std::vector<std::byte>(4096));
}

TEST_F(SessionTest, draining_answers_what_was_taken_and_takes_nothing_more) {
  connect();
  driver_->draining_output = false;
  ask(Command::read, 0, 4096);
  driver_->feed(std::exchange(outgoing_, {}));
  driver_->session().drain();
  EXPECT_FALSE(driver_->session().wants_input());
  EXPECT_FALSE(driver_->session().over());
  driver_->draining_output = true;
  driver_->run();
  EXPECT_EQ(replies().size(), 1U);
  EXPECT_TRUE(driver_->session().over());
}

TEST_F(SessionTest, listing_again_and_again_without_reading_is_held_back) {
  driver_.emplace(exports_);
  driver_->feed(wire::client_flags());
  driver_->draining_output = false;
  wire::Bytes lists;
  for (int i = 0; i < 16'000; ++i) {
    lists.add(wire::option(Option::list));
  }
  const std::size_t taken = driver_->feed(lists);
  EXPECT_LE(taken, Intake::kBufferBytes);
  EXPECT_LE(driver_->session().output().size(), 256U << 10);
}

TEST_F(SessionTest, memory_given_back_when_silent_is_taken_again_when_needed) {
  connect();
  const std::vector<std::byte> data = pattern(1U << 20, 5);
  for (int i = 0; i < 3; ++i) {
    ask_write(0, data);
    EXPECT_EQ(sole_error(), WireError::ok);
    ask(Command::read, 0, 1U << 20);
    const std::vector<wire::Reply> got = send();
    ASSERT_EQ(got.size(), 1U);
    EXPECT_TRUE(got[0].data == data);
    driver_->session().trim();
  }
}

TEST_F(SessionTest, giving_memory_back_in_the_middle_of_a_payload_loses_nothing) {
  connect();
  const std::vector<std::byte> data = pattern(1U << 20, 6);
  const wire::Bytes write = wire::write_request(1, 0, data);
  EXPECT_EQ(driver_->feed(write.view().first(300'000)), 300'000U);
  driver_->session().trim();
  driver_->feed(write.view().subspan(300'000));
  EXPECT_TRUE(content(0, 1U << 20) == data);
}

}  // namespace
}  // namespace uzram::nbd
