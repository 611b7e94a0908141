#include "frontend/nbd/handshake.hpp"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "unit/nbd/wire.hpp"

namespace uzram::nbd {
namespace {

using wire::Bytes;
using wire::context_data;
using wire::go;
using wire::info_data;
using wire::option;
using wire::OptionAnswer;

class HandshakeTest : public testing::Test {
 protected:
  HandshakeTest() { EXPECT_TRUE(handshake_->greet(out_)); }

  // Steps over `input` until it is used up, or the handshake ends or wants more. Returns the bytes
  // used.
  std::size_t feed(const Bytes& input) {
    std::size_t used = 0;
    while (handshake_->state() <= Handshake::State::options) {
      const std::size_t step = handshake_->step(input.view().subspan(used), out_);
      if (step == 0) {
        break;
      }
      used += step;
    }
    return used;
  }

  // The greeting taken off, flags sent.
  void begin(std::uint32_t flags = kFlagFixedNewstyle | kFlagNoZeroes) {
    out_.clear();
    feed(wire::client_flags(flags));
  }

  std::vector<OptionAnswer> answers() {
    std::span<const std::byte> bytes = out_.bytes();
    std::vector<OptionAnswer> taken = wire::take_option_answers(bytes);
    EXPECT_TRUE(bytes.empty());
    out_.clear();
    return taken;
  }

  // Sends `input` and expects a single answer to it.
  OptionReply sole_answer(const Bytes& input) {
    feed(input);
    const std::vector<OptionAnswer> taken = answers();
    EXPECT_EQ(taken.size(), 1U);
    return taken.empty() ? OptionReply{} : taken.front().type;
  }

  static constexpr std::uint64_t kSize = std::uint64_t{3} << 40;
  std::vector<ExportInfo> exports_{{"first", "the first one", kSize, 4096, 4096, false},
                                   {"second", "", 8192, 512, 4096, true}};
  std::optional<Handshake> handshake_{std::in_place, exports_, 0U};
  ByteBuffer out_;
};

TEST_F(HandshakeTest, greets_with_both_magics_and_fixed_newstyle_without_zeroes) {
  ASSERT_EQ(out_.size(), 18U);
  EXPECT_EQ(load_be<std::uint64_t>(out_.data()), kInitMagic);
  EXPECT_EQ(load_be<std::uint64_t>(out_.data() + 8), kOptionMagic);
  EXPECT_EQ(load_be<std::uint16_t>(out_.data() + 16), kFlagFixedNewstyle | kFlagNoZeroes);
}

TEST_F(HandshakeTest, hangs_up_on_client_flags_it_does_not_know) {
  begin(kFlagFixedNewstyle | 1U << 7);
  EXPECT_EQ(handshake_->state(), Handshake::State::closed);
}

TEST_F(HandshakeTest, waits_until_all_of_an_option_has_arrived) {
  begin();
  const Bytes whole = go("first");
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(handshake_->step(whole.view().first(i), out_), 0U);
  }
  EXPECT_EQ(handshake_->step(whole.view(), out_), whole.size());
  EXPECT_EQ(handshake_->state(), Handshake::State::transmission);
}

TEST_F(HandshakeTest, go_answers_with_size_and_block_sizes_then_ack) {
  begin();
  feed(go("first"));
  const std::vector<OptionAnswer> got = answers();
  ASSERT_EQ(got.size(), 3U);
  ASSERT_EQ(got[0].type, OptionReply::info);
  ASSERT_EQ(got[0].data.size(), 12U);
  EXPECT_EQ(load_be<std::uint16_t>(got[0].data.data()), 0U);
  EXPECT_EQ(load_be<std::uint64_t>(got[0].data.data() + 2), kSize);
  EXPECT_EQ(load_be<std::uint16_t>(got[0].data.data() + 10),
            kHasFlags | kSendFlush | kSendFua | kSendTrim | kSendWriteZeroes | kCanMultiConn |
                kSendCache | kSendFastZero);
  ASSERT_EQ(got[1].data.size(), 14U);
  EXPECT_EQ(load_be<std::uint16_t>(got[1].data.data()), 3U);
  EXPECT_EQ(load_be<std::uint32_t>(got[1].data.data() + 2), 4096U);
  EXPECT_EQ(load_be<std::uint32_t>(got[1].data.data() + 6), 4096U);
  EXPECT_EQ(load_be<std::uint32_t>(got[1].data.data() + 10), 32U << 20);
  EXPECT_EQ(got[2].type, OptionReply::ack);
  EXPECT_EQ(handshake_->state(), Handshake::State::transmission);
}

TEST_F(HandshakeTest, info_tells_name_and_description_when_asked_and_negotiation_goes_on) {
  begin();
  feed(option(Option::info, info_data("first", {Info::name, Info::description})));
  const std::vector<OptionAnswer> got = answers();
  ASSERT_EQ(got.size(), 5U);
  EXPECT_EQ(got[2].text(), std::string("\0\1first", 7));
  EXPECT_EQ(got[3].text(), std::string("\0\2the first one", 15));
  EXPECT_EQ(handshake_->state(), Handshake::State::options);
}

TEST_F(HandshakeTest, a_read_only_export_says_so_and_offers_nothing_that_writes) {
  begin();
  feed(go("second"));
  const std::vector<OptionAnswer> got = answers();
  ASSERT_EQ(got.size(), 3U);
  const auto flags = load_be<std::uint16_t>(got[0].data.data() + 10);
  EXPECT_NE(flags & kReadOnly, 0);
  EXPECT_EQ(flags & (kSendTrim | kSendWriteZeroes | kSendFastZero), 0);
}

TEST_F(HandshakeTest, the_empty_name_is_the_default_export) {
  Handshake other(exports_, 1);
  ASSERT_NE(other.step(wire::client_flags().view(), out_), 0U);
  ASSERT_NE(other.step(go("").view(), out_), 0U);
  ASSERT_EQ(other.state(), Handshake::State::transmission);
  EXPECT_EQ(other.agreement().export_index, 1U);
}

TEST_F(HandshakeTest, an_unknown_name_is_refused_and_negotiation_goes_on) {
  begin();
  EXPECT_EQ(sole_answer(go("third")), OptionReply::err_unknown);
  EXPECT_EQ(sole_answer(go("firs")), OptionReply::err_unknown);
  feed(go("second"));
  ASSERT_EQ(handshake_->state(), Handshake::State::transmission);
  EXPECT_EQ(handshake_->agreement().export_index, 1U);
}

TEST_F(HandshakeTest, lists_every_export_with_its_description) {
  begin();
  feed(option(Option::list));
  const std::vector<OptionAnswer> got = answers();
  ASSERT_EQ(got.size(), 3U);
  EXPECT_EQ(got[0].text(), std::string("\0\0\0\5firstthe first one", 22));
  EXPECT_EQ(got[1].text(), std::string("\0\0\0\6second", 10));
  EXPECT_EQ(got[2].type, OptionReply::ack);
}

TEST_F(HandshakeTest, options_that_take_no_data_refuse_data) {
  begin();
  EXPECT_EQ(sole_answer(option(Option::list, Bytes().add("x"))), OptionReply::err_invalid);
  EXPECT_EQ(sole_answer(option(Option::structured_reply, Bytes().add("x"))),
            OptionReply::err_invalid);
  feed(go("first"));
  EXPECT_FALSE(handshake_->agreement().structured_replies);
}

TEST_F(HandshakeTest, an_unknown_option_is_unsupported_its_data_read_past) {
  begin();
  EXPECT_EQ(sole_answer(option(11, Bytes().add("extended headers, some day"))),
            OptionReply::err_unsup);
  EXPECT_EQ(sole_answer(option(0xffffffff)), OptionReply::err_unsup);
  feed(go("first"));
  EXPECT_EQ(handshake_->state(), Handshake::State::transmission);
}

TEST_F(HandshakeTest, abort_is_acknowledged_and_ends_it) {
  begin();
  EXPECT_EQ(sole_answer(option(Option::abort)), OptionReply::ack);
  EXPECT_EQ(handshake_->state(), Handshake::State::closed);
}

TEST_F(HandshakeTest, a_wrong_option_magic_ends_it) {
  begin();
  feed(Bytes().add(std::uint64_t{1}).add(std::uint32_t{3}).add(std::uint32_t{0}));
  EXPECT_EQ(handshake_->state(), Handshake::State::closed);
  EXPECT_TRUE(out_.empty());
}

// Holes of other servers.

TEST_F(HandshakeTest, refuses_a_name_length_of_0xffffffff) {
  begin();
  const Bytes data = Bytes().add(std::uint32_t{0xffffffff}).add("name").add(std::uint16_t{0});
  EXPECT_EQ(sole_answer(option(Option::go, data)), OptionReply::err_too_big);
  EXPECT_EQ(sole_answer(option(Option::info, data)), OptionReply::err_too_big);
  feed(option(Option::structured_reply));
  answers();
  EXPECT_EQ(sole_answer(option(Option::set_meta_context, data)), OptionReply::err_too_big);
  feed(go("first"));
  EXPECT_EQ(handshake_->state(), Handshake::State::transmission);
}

TEST_F(HandshakeTest, refuses_a_name_that_ends_beyond_its_option) {
  begin();
  const Bytes data = Bytes().add(std::uint32_t{100}).add("name").add(std::uint16_t{0});
  EXPECT_EQ(sole_answer(option(Option::go, data)), OptionReply::err_invalid);
  EXPECT_EQ(sole_answer(option(Option::list_meta_context, data)), OptionReply::err_invalid);
}

TEST_F(HandshakeTest, refuses_a_name_longer_than_4096_bytes) {
  begin();
  EXPECT_EQ(sole_answer(go(std::string(4097, 'n'))), OptionReply::err_too_big);
  // As long as a name may be: merely not there.
  EXPECT_EQ(sole_answer(go(std::string(4096, 'n'))), OptionReply::err_unknown);
}

TEST_F(HandshakeTest, finds_an_export_whose_name_has_4096_bytes) {
  exports_.push_back({std::string(4096, 'n'), "", 8192, 512, 4096, false});
  Handshake handshake(exports_, 0);
  ASSERT_NE(handshake.step(wire::client_flags().view(), out_), 0U);
  ASSERT_NE(handshake.step(go(std::string(4096, 'n')).view(), out_), 0U);
  ASSERT_EQ(handshake.state(), Handshake::State::transmission);
  EXPECT_EQ(handshake.agreement().export_index, 2U);
}

TEST_F(HandshakeTest, export_name_of_an_unknown_or_endless_name_ends_it) {
  begin();
  feed(option(Option::export_name, Bytes().add("third")));
  EXPECT_EQ(handshake_->state(), Handshake::State::closed);
  EXPECT_TRUE(out_.empty());

  Handshake other(exports_, 0);
  ASSERT_NE(other.step(wire::client_flags().view(), out_), 0U);
  const Bytes endless = Bytes().add(kOptionMagic).add(std::uint32_t{1}).add(0xffffffffU);
  EXPECT_NE(other.step(endless.view(), out_), 0U);
  EXPECT_EQ(other.state(), Handshake::State::closed);
}

TEST_F(HandshakeTest, an_option_length_of_0xffffffff_ends_it) {
  begin();
  feed(Bytes().add(kOptionMagic).add(std::uint32_t{99}).add(0xffffffffU));
  EXPECT_EQ(handshake_->state(), Handshake::State::closed);
}

TEST_F(HandshakeTest, an_option_over_64_kib_is_too_big_and_read_past) {
  begin();
  const std::string data(70'000, 'x');
  EXPECT_EQ(sole_answer(option(99, Bytes().add(data))), OptionReply::err_too_big);
  EXPECT_EQ(sole_answer(option(Option::list, Bytes().add(data))), OptionReply::err_too_big);
  feed(go("first"));
  EXPECT_EQ(handshake_->state(), Handshake::State::transmission);
}

TEST_F(HandshakeTest, refuses_information_requests_that_do_not_match_their_count) {
  begin();
  Bytes more = Bytes().add_counted("first").add(std::uint16_t{2}).add(std::uint16_t{0});
  EXPECT_EQ(sole_answer(option(Option::go, more)), OptionReply::err_invalid);
  Bytes fewer = Bytes().add_counted("first").add(std::uint16_t{0}).add(std::uint16_t{0});
  EXPECT_EQ(sole_answer(option(Option::go, fewer)), OptionReply::err_invalid);
  Bytes none = Bytes().add_counted("first");
  EXPECT_EQ(sole_answer(option(Option::go, none)), OptionReply::err_invalid);
  EXPECT_EQ(handshake_->state(), Handshake::State::options);
}

TEST_F(HandshakeTest, starttls_is_unsupported_and_changes_nothing_negotiated_before) {
  begin();
  feed(option(Option::structured_reply));
  feed(option(Option::set_meta_context, context_data("first", {"base:allocation"})));
  answers();
  EXPECT_EQ(sole_answer(option(Option::starttls)), OptionReply::err_unsup);
  // There is no TLS, so there is nothing a man in the middle could have slipped in before it.
  feed(go("first"));
  EXPECT_TRUE(handshake_->agreement().structured_replies);
  EXPECT_TRUE(handshake_->agreement().allocation_context);
}

// Options in an unexpected order.

TEST_F(HandshakeTest, set_meta_context_before_structured_reply_is_invalid) {
  begin();
  const Bytes set = option(Option::set_meta_context, context_data("first", {"base:allocation"}));
  EXPECT_EQ(sole_answer(set), OptionReply::err_invalid);
  EXPECT_EQ(sole_answer(option(Option::structured_reply)), OptionReply::ack);
  feed(go("first"));
  EXPECT_FALSE(handshake_->agreement().allocation_context);
}

TEST_F(HandshakeTest, a_context_set_for_another_export_is_not_kept) {
  begin();
  feed(option(Option::structured_reply));
  feed(option(Option::set_meta_context, context_data("second", {"base:allocation"})));
  feed(go("first"));
  ASSERT_EQ(handshake_->state(), Handshake::State::transmission);
  EXPECT_FALSE(handshake_->agreement().allocation_context);
}

TEST_F(HandshakeTest, a_failed_or_empty_selection_forgets_the_one_before) {
  for (const Bytes& second :
       {context_data("third", {"base:allocation"}), context_data("first", {}),
        context_data("first", {"base:", "qemu:dirty-bitmap:x"}), Bytes().add("x")}) {
    handshake_.emplace(exports_, 0U);
    begin();
    feed(option(Option::structured_reply));
    feed(option(Option::set_meta_context, context_data("first", {"base:allocation"})));
    feed(option(Option::set_meta_context, second));
    feed(go("first"));
    ASSERT_EQ(handshake_->state(), Handshake::State::transmission);
    EXPECT_FALSE(handshake_->agreement().allocation_context);
  }
}

TEST_F(HandshakeTest, lists_the_allocation_context_for_all_queries_that_mean_it) {
  begin();
  for (const std::vector<std::string>& queries :
       {std::vector<std::string>{}, {"base:"}, {"x:y", "base:allocation"}}) {
    feed(option(Option::list_meta_context, context_data("first", queries)));
    const std::vector<OptionAnswer> got = answers();
    ASSERT_EQ(got.size(), 2U);
    EXPECT_EQ(got[0].text().substr(4), "base:allocation");
  }
  EXPECT_EQ(sole_answer(option(Option::list_meta_context, context_data("first", {"x:y"}))),
            OptionReply::ack);
}

TEST_F(HandshakeTest, refuses_context_queries_that_end_beyond_their_option) {
  begin();
  feed(option(Option::structured_reply));
  answers();
  const Bytes many = Bytes().add_counted("first").add(0xffffffffU).add_counted("base:allocation");
  EXPECT_EQ(sole_answer(option(Option::set_meta_context, many)), OptionReply::err_invalid);
  const Bytes endless = Bytes().add_counted("first").add(std::uint32_t{1}).add(0xffffffffU);
  EXPECT_EQ(sole_answer(option(Option::set_meta_context, endless)), OptionReply::err_too_big);
  const Bytes rest = context_data("first", {"base:allocation"}).add("rest");
  EXPECT_EQ(sole_answer(option(Option::set_meta_context, rest)), OptionReply::err_invalid);
}

TEST_F(HandshakeTest, without_fixed_newstyle_there_is_only_export_name) {
  begin(0);
  feed(option(Option::list));
  EXPECT_EQ(handshake_->state(), Handshake::State::closed);
  EXPECT_TRUE(out_.empty());
}

TEST_F(HandshakeTest, export_name_answers_with_size_flags_and_zeroes_unless_told_not_to) {
  begin(0);
  feed(option(Option::export_name, Bytes().add("first")));
  ASSERT_EQ(handshake_->state(), Handshake::State::transmission);
  ASSERT_EQ(out_.size(), 134U);
  EXPECT_EQ(load_be<std::uint64_t>(out_.data()), kSize);
  for (std::size_t i = 10; i < 134; ++i) {
    EXPECT_EQ(out_.data()[i], std::byte{0});
  }
}

TEST_F(HandshakeTest, export_name_with_no_zeroes_answers_with_size_and_flags_alone) {
  begin();
  feed(option(Option::structured_reply));
  out_.clear();
  feed(option(Option::export_name));
  ASSERT_EQ(handshake_->state(), Handshake::State::transmission);
  ASSERT_EQ(out_.size(), 10U);
  EXPECT_NE(load_be<std::uint16_t>(out_.data() + 8) & kSendDf, 0);
  EXPECT_TRUE(handshake_->agreement().structured_replies);
}

TEST_F(HandshakeTest, what_follows_go_is_left_for_the_transmission) {
  begin();
  const Bytes both = go("first").add(wire::request(Command::read, 1, 0, 4096));
  EXPECT_EQ(feed(both), both.size() - kRequestHeaderBytes);
}

}  // namespace
}  // namespace uzram::nbd
