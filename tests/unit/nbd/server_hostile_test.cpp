// Clients that misbehave, vanish or are too many.
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "unit/nbd/server_fixture.hpp"

namespace uzram::nbd {
namespace {

using HostileClientTest = ServerTest;

TEST_F(HostileClientTest, one_that_never_speaks_is_disconnected) {
  ServerOptions with = options();
  with.handshake_timeout_ms = 100;
  start(with);
  RawClient silent = unix_client();
  RawClient talker = unix_client();
  ASSERT_TRUE(talker.go("first"));
  EXPECT_TRUE(silent.closed_by_server());
  // The limit is on the handshake only.
  EXPECT_TRUE(eventually([&] { return server_->connections() == 1; }));
  EXPECT_TRUE(talker.answered());
}

TEST_F(HostileClientTest, one_that_negotiates_for_ever_is_disconnected) {
  ServerOptions with = options();
  with.handshake_timeout_ms = 300;
  start(with);
  RawClient client = RawClient::to_tcp(port_);
  ASSERT_EQ(client.receive(18).size(), 18U);
  ASSERT_TRUE(client.send(wire::client_flags()));
  EXPECT_TRUE(eventually([&] {
    return !client.send(wire::option(Option::structured_reply)) || client.receive(20).size() != 20;
  }));
}

TEST_F(HostileClientTest, those_beyond_the_limit_are_closed_and_places_become_free_again) {
  ServerOptions with = options();
  with.max_connections = 3;
  start(with);
  std::vector<RawClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(i == 1 ? RawClient::to_tcp(port_) : unix_client());
    ASSERT_TRUE(clients.back().go("first"));
  }
  RawClient refused = unix_client();
  EXPECT_TRUE(refused.receive(18).empty());
  EXPECT_TRUE(clients[0].answered());
  clients.pop_back();
  EXPECT_TRUE(eventually([&] { return server_->connections() == 2; }));
  EXPECT_TRUE(unix_client().go("first"));
}

TEST_F(HostileClientTest, one_that_vanishes_in_the_middle_leaves_nothing_and_disturbs_nobody) {
  start();
  RawClient other = unix_client();
  ASSERT_TRUE(other.go("first"));
  const std::vector<wire::Bytes> ends = {
      // Part of a header; a header without its payload; half a payload, small and large.
      wire::Bytes().add(kRequestMagic),
      wire::request(Command::write, 1, 0, 65536),
      wire::request(Command::write, 1, 0, 8192).add(std::string(4096, 'x')),
      wire::request(Command::write, 1, 0, 8U << 20).add(std::string(4U << 20, 'x')),
      // Requests whose replies nobody takes.
      wire::request(Command::read, 1, 0, 8U << 20)
          .add(wire::request(Command::read, 2, 0, 8U << 20)),
  };
  for (int round = 0; round < 5; ++round) {
    for (const wire::Bytes& end : ends) {
      for (const bool tcp : {false, true}) {
        RawClient client = tcp ? RawClient::to_tcp(port_) : unix_client();
        ASSERT_TRUE(client.go("first"));
        ASSERT_TRUE(client.send(end));
        client.vanish();
      }
    }
    EXPECT_TRUE(other.answered());
  }
  EXPECT_TRUE(eventually([&] { return server_->connections() == 1; }));
  std::vector<std::byte> page(4096);
  EXPECT_EQ(devices_[0]->read(0, page), Errc::ok);
  EXPECT_EQ(page, std::vector<std::byte>(4096)) << "of a write that did not arrive whole";
}

TEST_F(HostileClientTest, one_that_takes_no_replies_holds_up_nobody_else) {
  ServerOptions with = options();
  with.loops = 1;
  start(with);
  RawClient lazy = unix_client();
  ASSERT_TRUE(lazy.go("first"));
  for (std::uint64_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(lazy.send(wire::request(Command::read, i, 0, 1U << 20)));
  }
  RawClient other = RawClient::to_tcp(port_);
  ASSERT_TRUE(other.go("first"));
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(other.answered());
  }
  // All of it is there once it is taken.
  EXPECT_EQ(lazy.receive(100 * ((1U << 20) + kSimpleReplyBytes)).size(),
            100 * ((1U << 20) + kSimpleReplyBytes));
}

TEST_F(HostileClientTest, a_broken_frame_closes_its_own_connection_only) {
  start();
  RawClient broken = unix_client();
  RawClient other = unix_client();
  ASSERT_TRUE(broken.go("first"));
  ASSERT_TRUE(other.go("first"));
  ASSERT_TRUE(broken.send(wire::Bytes().add(std::string(28, '?'))));
  EXPECT_TRUE(broken.closed_by_server());
  EXPECT_TRUE(other.answered());
  RawClient overlong = unix_client();
  ASSERT_TRUE(overlong.go("first"));
  ASSERT_TRUE(overlong.send(wire::request(Command::write, 1, 0, 0xfffff000U)));
  EXPECT_TRUE(overlong.closed_by_server());
  EXPECT_TRUE(other.answered());
}

TEST_F(HostileClientTest, garbage_instead_of_a_handshake_is_closed) {
  start();
  for (const char filler : {'\0', 'G', '\xff'}) {
    RawClient client = unix_client();
    ASSERT_EQ(client.receive(18).size(), 18U);
    client.send(wire::client_flags());
    client.send(wire::Bytes().add(std::string(4096, filler)));
    EXPECT_TRUE(client.closed_by_server());
  }
}

TEST_F(HostileClientTest, one_that_sends_its_last_request_and_closes_its_half_gets_the_reply) {
  start();
  RawClient client = RawClient::to_tcp(port_);
  ASSERT_TRUE(client.go("first"));
  ASSERT_TRUE(client.send(wire::request(Command::read, 1, 0, 4096)));
  ASSERT_EQ(::shutdown(client.fd(), SHUT_WR), 0);
  EXPECT_EQ(client.receive(10'000).size(), kSimpleReplyBytes + 4096);
}

TEST_F(HostileClientTest, connections_wait_while_descriptors_run_out_and_are_served_after) {
  start();
  RawClient served = unix_client();
  ASSERT_TRUE(served.go("first"));
  RawClient accepted = RawClient::unconnected();
  RawClient held_back = RawClient::unconnected();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 1;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  // The accept that is already on its way goes by the limit of when it was submitted.
  EXPECT_TRUE(accepted.connect(path("first.nbd")));
  EXPECT_TRUE(accepted.go("first"));
  EXPECT_TRUE(held_back.connect(path("first.nbd")));
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(served.answered());
  }
  EXPECT_EQ(server_->connections(), 2U);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(held_back.go("first"));
}

}  // namespace
}  // namespace uzram::nbd
