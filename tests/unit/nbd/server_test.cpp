// What a client of a running server sees, mostly through libnbd.
#include "frontend/nbd/server.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <libnbd.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "unit/nbd/server_fixture.hpp"

namespace uzram::nbd {
namespace {

struct CloseNbd {
  void operator()(nbd_handle* handle) const { nbd_close(handle); }
};
using Nbd = std::unique_ptr<nbd_handle, CloseNbd>;

Nbd connect_nbd(const std::string& uri) {
  Nbd handle(nbd_create());
  EXPECT_EQ(nbd_add_meta_context(handle.get(), LIBNBD_CONTEXT_BASE_ALLOCATION), 0);
  EXPECT_EQ(nbd_connect_uri(handle.get(), uri.c_str()), 0) << nbd_get_error();
  return handle;
}

std::vector<char> letters(std::size_t length, char letter) {
  return std::vector<char>(length, letter);
}

TEST_F(ServerTest, names_a_uri_for_each_way_to_each_export) {
  start();
  const std::string port = std::to_string(port_);
  EXPECT_EQ(server_->uris("first"),
            (std::vector<std::string>{"nbd+unix:///first?socket=" + path("first.nbd"),
                                      "nbd://127.0.0.1:" + port + "/first"}));
  EXPECT_EQ(server_->uris("second"),
            (std::vector<std::string>{"nbd+unix:///second?socket=" + path("second.nbd"),
                                      "nbd://127.0.0.1:" + port + "/second"}));
  // No socket of its own, so every one.
  EXPECT_EQ(server_->uris("fixed").size(), 3U);
  EXPECT_EQ(server_->uris().size(), 7U);
  EXPECT_TRUE(server_->uris("third").empty());
}

TEST_F(ServerTest, every_uri_leads_to_its_export) {
  start();
  for (const std::string& uri : server_->uris()) {
    const Nbd handle = connect_nbd(uri);
    EXPECT_EQ(nbd_get_size(handle.get()), static_cast<std::int64_t>(kSize)) << uri;
    const bool fixed = uri.find("/fixed") != std::string::npos;
    EXPECT_EQ(nbd_is_read_only(handle.get()), fixed ? 1 : 0) << uri;
    const int minimum =
        uri.find("/second?") != std::string::npos || uri.ends_with("/second") ? 512 : 4096;
    EXPECT_EQ(nbd_get_block_size(handle.get(), LIBNBD_SIZE_MINIMUM), minimum) << uri;
    EXPECT_EQ(nbd_get_block_size(handle.get(), LIBNBD_SIZE_MAXIMUM), 32 << 20) << uri;
    EXPECT_EQ(nbd_can_multi_conn(handle.get()), 1) << uri;
    EXPECT_EQ(nbd_shutdown(handle.get(), 0), 0) << nbd_get_error();
  }
}

TEST_F(ServerTest, the_empty_name_is_the_listeners_default_export) {
  start();
  std::vector<char> one(512);
  Nbd writer = connect_nbd(server_->uris("second").back());
  EXPECT_EQ(nbd_pwrite(writer.get(), letters(512, 's').data(), 512, 0, 0), 0);
  const Nbd second = connect_nbd("nbd+unix:///?socket=" + path("second.nbd"));
  EXPECT_EQ(nbd_pread(second.get(), one.data(), 512, 0, 0), 0) << nbd_get_error();
  EXPECT_EQ(one, letters(512, 's'));
  const Nbd first = connect_nbd("nbd://127.0.0.1:" + std::to_string(port_));
  EXPECT_EQ(nbd_get_block_size(first.get(), LIBNBD_SIZE_MINIMUM), 4096);
}

TEST_F(ServerTest, reads_back_over_tcp_what_was_written_over_unix) {
  start();
  const Nbd over_unix = connect_nbd(server_->uris("first").front());
  const Nbd over_tcp = connect_nbd(server_->uris("first").back());
  for (const std::size_t length :
       {std::size_t{4096}, std::size_t{1} << 20, std::size_t{32} << 20}) {
    std::vector<char> data(length);
    for (std::size_t i = 0; i < length; ++i) {
      data[i] = static_cast<char>(i * 7 + i / 4096 + length);
    }
    ASSERT_EQ(nbd_pwrite(over_unix.get(), data.data(), length, 8192, 0), 0) << nbd_get_error();
    std::vector<char> back(length);
    ASSERT_EQ(nbd_pread(over_tcp.get(), back.data(), length, 8192, 0), 0) << nbd_get_error();
    EXPECT_TRUE(back == data) << length;
  }
}

int collect_extents(void* out, const char* /*context*/, std::uint64_t /*offset*/,
                    std::uint32_t* entries, std::size_t count, int* /*error*/) {
  auto& found = *static_cast<std::vector<std::uint32_t>*>(out);
  found.insert(found.end(), entries, entries + count);
  return 0;
}

TEST_F(ServerTest, libnbd_sees_holes_zeroes_and_data) {
  start();
  const Nbd handle = connect_nbd(server_->uris("first").front());
  nbd_handle* const nbd = handle.get();
  ASSERT_EQ(nbd_pwrite(nbd, letters(16384, 'x').data(), 16384, 0, LIBNBD_CMD_FLAG_FUA), 0);
  ASSERT_EQ(nbd_zero(nbd, 4096, 0, LIBNBD_CMD_FLAG_NO_HOLE), 0);
  ASSERT_EQ(nbd_zero(nbd, 4096, 4096, LIBNBD_CMD_FLAG_FAST_ZERO), 0);
  ASSERT_EQ(nbd_trim(nbd, 4096, 8192, 0), 0);
  ASSERT_EQ(nbd_flush(nbd, 0), 0);
  ASSERT_EQ(nbd_cache(nbd, 4096, 0, 0), 0);
  std::vector<std::uint32_t> extents;
  nbd_extent_callback callback{};
  callback.callback = collect_extents;
  callback.user_data = &extents;
  ASSERT_EQ(nbd_block_status(nbd, kSize, 0, callback, 0), 0) << nbd_get_error();
  EXPECT_EQ(extents, (std::vector<std::uint32_t>{
                         4096, LIBNBD_STATE_ZERO, 8192, LIBNBD_STATE_ZERO | LIBNBD_STATE_HOLE, 4096,
                         0, kSize - 16384, LIBNBD_STATE_ZERO | LIBNBD_STATE_HOLE}));
  EXPECT_EQ(nbd_pread(nbd, letters(4096, 0).data(), 4096, kSize - 4096, 0), 0);
}

TEST_F(ServerTest, errors_reach_the_client_and_the_connection_lives) {
  start();
  const Nbd handle = connect_nbd(server_->uris("first").front());
  nbd_set_strict_mode(handle.get(), 0);
  std::vector<char> data(8192);
  EXPECT_EQ(nbd_pwrite(handle.get(), data.data(), data.size(), kSize - 4096, 0), -1);
  EXPECT_EQ(nbd_get_errno(), ENOSPC);
  EXPECT_EQ(nbd_pread(handle.get(), data.data(), data.size(), kSize - 4096, 0), -1);
  EXPECT_EQ(nbd_get_errno(), EINVAL);
  EXPECT_EQ(nbd_pread(handle.get(), data.data(), 100, 0, 0), -1);
  EXPECT_EQ(nbd_get_errno(), EINVAL);
  EXPECT_EQ(nbd_flush(handle.get(), 0), 0) << nbd_get_error();
}

TEST_F(ServerTest, a_full_store_is_enospc_until_it_may_grow) {
  devices_[0]->set_mem_limit(1U << 20);
  start();
  const Nbd handle = connect_nbd(server_->uris("first").front());
  const std::vector<std::byte> data = wire::pattern(16U << 20, 1);
  EXPECT_EQ(nbd_pwrite(handle.get(), data.data(), data.size(), 0, 0), -1);
  EXPECT_EQ(nbd_get_errno(), ENOSPC);
  devices_[0]->set_mem_limit(0);
  EXPECT_EQ(nbd_pwrite(handle.get(), data.data(), data.size(), 0, 0), 0) << nbd_get_error();
}

TEST_F(ServerTest, many_connections_to_several_exports_keep_their_data_apart) {
  start();
  constexpr unsigned kClients = 24;
  constexpr unsigned kRounds = 20;
  constexpr std::size_t kSlice = 128U << 10;
  std::atomic<unsigned> failures{0};
  std::vector<std::thread> clients;
  const std::vector<std::string> uris = {server_->uris("first").front(),
                                         server_->uris("first").back(),
                                         server_->uris("second").front()};
  for (unsigned i = 0; i < kClients; ++i) {
    clients.emplace_back([&, i] {
      const Nbd handle = connect_nbd(uris[i % uris.size()]);
      std::vector<char> back(kSlice);
      for (unsigned round = 0; round < kRounds; ++round) {
        const std::vector<char> data = letters(kSlice, static_cast<char>('a' + (i + round) % 26));
        const bool good = nbd_pwrite(handle.get(), data.data(), kSlice, i * kSlice, 0) == 0 &&
                          nbd_pread(handle.get(), back.data(), kSlice, i * kSlice, 0) == 0 &&
                          back == data;
        failures += good ? 0 : 1;
      }
    });
  }
  for (std::thread& client : clients) {
    client.join();
  }
  EXPECT_EQ(failures, 0U);
  EXPECT_TRUE(eventually([this] { return server_->connections() == 0; }));
}

TEST_F(ServerTest, requests_in_flight_are_answered_each_with_its_own_data) {
  start();
  const Nbd handle = connect_nbd(server_->uris("first").front());
  constexpr std::size_t kDepth = 64;
  constexpr std::size_t kLength = 64U << 10;
  std::vector<std::vector<char>> buffers;
  for (std::size_t i = 0; i < kDepth; ++i) {
    buffers.push_back(letters(kLength, static_cast<char>(i + 1)));
  }
  const auto all = [&](auto&& issue) {
    std::vector<std::int64_t> cookies;
    for (std::size_t i = 0; i < kDepth; ++i) {
      cookies.push_back(issue(i));
      ASSERT_GT(cookies.back(), 0) << nbd_get_error();
    }
    for (const std::int64_t cookie : cookies) {
      while (nbd_aio_command_completed(handle.get(), static_cast<std::uint64_t>(cookie)) == 0) {
        ASSERT_EQ(nbd_poll(handle.get(), -1), 1) << nbd_get_error();
      }
    }
  };
  all([&](std::size_t i) {
    return nbd_aio_pwrite(handle.get(), buffers[i].data(), kLength, i * kLength,
                          NBD_NULL_COMPLETION, 0);
  });
  std::vector<std::vector<char>> back(kDepth, std::vector<char>(kLength));
  all([&](std::size_t i) {
    return nbd_aio_pread(handle.get(), back[i].data(), kLength, i * kLength, NBD_NULL_COMPLETION,
                         0);
  });
  EXPECT_TRUE(back == buffers);
}

TEST_F(ServerTest, stops_while_connections_are_open_and_removes_its_sockets) {
  start();
  RawClient idle = unix_client();
  ASSERT_TRUE(idle.go("first"));
  RawClient silent = RawClient::to_tcp(port_);
  RawClient half = unix_client();
  ASSERT_TRUE(half.go("first"));
  half.send(wire::request(Command::write, 1, 0, 1U << 20));
  server_->stop();
  EXPECT_TRUE(idle.closed_by_server());
  EXPECT_TRUE(silent.closed_by_server());
  EXPECT_TRUE(half.closed_by_server());
  EXPECT_EQ(server_->connections(), 0U);
  EXPECT_FALSE(std::filesystem::exists(path("first.nbd")));
  EXPECT_FALSE(std::filesystem::exists(path("second.nbd")));
  server_->stop();
}

TEST_F(ServerTest, stops_although_a_client_takes_no_replies) {
  ServerOptions with = options();
  with.stop_timeout_ms = 50;
  start(with);
  RawClient client = unix_client();
  ASSERT_TRUE(client.go("first"));
  for (std::uint64_t i = 0; i < 8; ++i) {
    ASSERT_TRUE(client.send(wire::request(Command::read, i, 0, 8U << 20)));
  }
  server_->stop();
  EXPECT_EQ(server_->connections(), 0U);
}

TEST_F(ServerTest, serves_again_on_the_same_paths_after_a_stop) {
  start();
  server_->stop();
  start();
  EXPECT_TRUE(unix_client().go("first"));
}

TEST_F(ServerTest, refuses_a_path_at_which_a_server_answers_and_leaves_that_one_alone) {
  start();
  const Result<std::unique_ptr<Server>> second = Server::start(options(), exports());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::busy);
  EXPECT_NE(second.error().message.find(path("first.nbd")), std::string::npos);
  EXPECT_TRUE(unix_client().go("first"));
}

TEST_F(ServerTest, refuses_options_that_cannot_be_and_says_which) {
  const auto message = [&](const ServerOptions& with, const std::vector<Export>& offered) {
    const Result<std::unique_ptr<Server>> server = Server::start(with, offered);
    EXPECT_FALSE(server);
    return server ? std::string() : server.error().message;
  };
  ServerOptions none = options();
  none.listeners.clear();
  EXPECT_NE(message(none, exports()).find("listeners"), std::string::npos);
  EXPECT_NE(message(options(), {}).find("exports"), std::string::npos);
  ServerOptions crowd = options();
  crowd.max_connections = 65'537;
  EXPECT_NE(message(crowd, exports()).find("65537: expected 1 to 65536"), std::string::npos);
  ServerOptions nobody = options();
  nobody.max_connections = 0;
  EXPECT_NE(message(nobody, exports()).find("max_connections 0"), std::string::npos);
  ServerOptions hasty = options();
  hasty.handshake_timeout_ms = 0;
  EXPECT_NE(message(hasty, exports()).find("handshake_timeout_ms 0"), std::string::npos);
  ServerOptions loopy = options();
  loopy.loops = 1025;
  EXPECT_NE(message(loopy, exports()).find("loops 1025"), std::string::npos);
  ServerOptions unknown = options();
  unknown.listeners[0].default_export = "third";
  EXPECT_NE(message(unknown, exports()).find("\"third\": expected one of first, second, fixed"),
            std::string::npos);
  std::vector<Export> twice = exports();
  twice[1].name = "first";
  EXPECT_NE(message(options(), twice).find("\"first\": the name is taken"), std::string::npos);
  std::vector<Export> odd = exports();
  odd[0].logical_block_bytes = 1000;
  EXPECT_NE(message(options(), odd).find("1000"), std::string::npos);
  std::vector<Export> large = exports();
  large[0].logical_block_bytes = 8192;
  EXPECT_NE(message(options(), large).find("8192"), std::string::npos);
  std::vector<Export> nameless = exports();
  nameless[0].name = std::string(4097, 'n');
  EXPECT_NE(message(options(), nameless).find("4097"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path("first.nbd")));
}

// Lets no io_uring be made any more in this process, as a container's filter does.
bool forbid_io_uring(std::uint32_t action) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, action),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{4, code};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST_F(ServerTest, says_so_when_io_uring_is_not_to_be_had) {
  constexpr int kNoFilter = 77;
  for (const auto& [number, word] : {std::pair{EPERM, "io_uring_disabled"}, {ENOSYS, "5.11"}}) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      if (!forbid_io_uring(SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(number))) {
        ::_exit(kNoFilter);
      }
      const Result<std::unique_ptr<Server>> server = Server::start(options(), exports());
      const bool said = !server && server.error().code == Errc::unsupported &&
                        server.error().message.find(word) != std::string::npos;
      ::_exit(said ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == kNoFilter) {
      GTEST_SKIP() << "seccomp filters are not allowed here";
    }
    EXPECT_EQ(WEXITSTATUS(status), 0) << word;
  }
}

}  // namespace
}  // namespace uzram::nbd
