#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uzram/device.hpp"
#include "uzram/request.hpp"

#include "bench/nbd_connection.hpp"
#include "bench/nbd_port.hpp"
#include "bench/target.hpp"
#include "unit/bench/nbd_relay.hpp"
#include "unit/nbd/server_fixture.hpp"

namespace uzram::bench {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::size_t kPage = kDataPage;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
// Of a READ in NBD.
constexpr std::size_t kRequestBytes = 28;

// Pages that depend on `seed`, and as many buffers to read into.
struct Buffers {
  explicit Buffers(std::size_t pages, std::uint64_t seed)
      : bytes(pages * kPage),
        written(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kPage}))),
        read(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kPage}))) {
    for (std::size_t i = 0; i < bytes; ++i) {
      written[i] = static_cast<std::byte>((i / kPage + seed) * 31 + i % 7);
    }
    std::fill_n(read, bytes, std::byte{0xee});
  }
  ~Buffers() {
    ::operator delete (written, std::align_val_t{kPage});
    ::operator delete (read, std::align_val_t{kPage});
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  [[nodiscard]] bool same() const { return std::equal(written, written + bytes, read); }

  std::size_t bytes;
  std::byte* written;
  std::byte* read;
};

Request make(Op op, std::uint64_t offset, std::uint64_t length, std::byte* buffer = nullptr) {
  Request request;
  request.op = op;
  request.offset = offset;
  request.length = length;
  request.buffer = buffer;
  request.status = Errc::busy;
  return request;
}

// Runs `requests` with at most `iodepth` in flight; true when all of them completed with `status`.
bool run(Port& port, std::vector<Request>& requests, std::size_t iodepth, Errc status = Errc::ok) {
  std::size_t begun = 0;
  std::size_t done = 0;
  bool as_expected = true;
  while (done < requests.size()) {
    std::vector<Request*> batch;
    while (begun < requests.size() && begun - done < iodepth) {
      batch.push_back(&requests[begun++]);
    }
    port.submit(batch);
    const Request* const request = port.reap();
    if (request == nullptr) {
      return false;
    }
    as_expected = as_expected && request->status == status;
    ++done;
  }
  return as_expected && port.reap() == nullptr;
}

std::vector<Request> over_pages(Op op, std::uint64_t offset, Buffers& buffers) {
  std::vector<Request> requests;
  std::byte* const bytes = op == Op::write ? buffers.written : buffers.read;
  for (std::size_t at = 0; at < buffers.bytes; at += kPage) {
    requests.push_back(make(op, offset + at, kPage, bytes + at));
  }
  return requests;
}

class NbdTarget : public nbd::ServerTest {
 protected:
  static TargetConfig config(const std::string& uri) {
    TargetConfig made;
    made.kind = TargetKind::nbd;
    made.given = uri;
    made.label = uri;
    made.address = uri;
    return made;
  }
  [[nodiscard]] std::string unix_uri(const std::string& name = "first",
                                     const std::string& socket = "first.nbd") const {
    return "nbd+unix:///" + name + "?socket=" + path(socket);
  }
  [[nodiscard]] std::string tcp_uri() const {
    return "nbd://127.0.0.1:" + std::to_string(port_) + "/first";
  }
  static TargetNeeds needs(std::uint64_t size_bytes = kSize) {
    TargetNeeds made;
    made.size_bytes = size_bytes;
    return made;
  }
  static std::unique_ptr<Target> open(const std::string& uri) {
    Result<std::unique_ptr<Target>> target = open_nbd_target(config(uri), needs());
    EXPECT_TRUE(target) << target.error().message;
    return target ? *std::move(target) : nullptr;
  }
  static std::unique_ptr<Port> open_port(Target& target, std::uint32_t iodepth) {
    Result<std::unique_ptr<Port>> port = target.open_port(iodepth);
    EXPECT_TRUE(port) << port.error().message;
    return port ? *std::move(port) : nullptr;
  }
  static void write_and_read(Target& target, std::uint32_t iodepth, std::uint64_t offset) {
    const std::unique_ptr<Port> port = open_port(target, iodepth);
    Buffers buffers(64, offset / kPage + 1);
    std::vector<Request> writes = over_pages(Op::write, offset, buffers);
    EXPECT_TRUE(run(*port, writes, iodepth)) << port->failure();
    std::vector<Request> reads = over_pages(Op::read, offset, buffers);
    EXPECT_TRUE(run(*port, reads, iodepth)) << port->failure();
    EXPECT_TRUE(buffers.same());
  }
  static std::string refusal(const std::string& uri, const TargetNeeds& needs_of_it) {
    const Result<std::unique_ptr<Target>> target = open_target(config(uri), needs_of_it);
    EXPECT_FALSE(target);
    return target ? "" : target.error().message;
  }
};

TEST_F(NbdTarget, what_was_written_is_read_at_depth_1_and_16) {
  start();
  const std::unique_ptr<Target> target = open(unix_uri());
  write_and_read(*target, 1, 0);
  write_and_read(*target, 16, 1 << 20);
}

TEST_F(NbdTarget, tcp_serves_as_well_and_the_path_says_which) {
  start();
  const std::unique_ptr<Target> over_unix = open(unix_uri());
  EXPECT_EQ(over_unix->info().path, "NBD over a Unix socket");
  const std::unique_ptr<Target> over_tcp = open(tcp_uri());
  EXPECT_EQ(over_tcp->info().path, "NBD over TCP");
  write_and_read(*over_tcp, 16, 0);
}

TEST_F(NbdTarget, execute_runs_one_request_of_each_kind) {
  start();
  const std::unique_ptr<Target> target = open(unix_uri());
  const std::unique_ptr<Port> port = open_port(*target, 1);
  Buffers buffers(4, 7);
  const std::array<Request, 6> kinds{make(Op::write, 0, buffers.bytes, buffers.written),
                                     make(Op::flush, 0, 0),
                                     make(Op::read, 0, buffers.bytes, buffers.read),
                                     make(Op::write_zeroes, 0, kPage),
                                     make(Op::allocate_zeroes, kPage, kPage),
                                     make(Op::discard, 2 * kPage, kPage)};
  for (Request request : kinds) {
    port->execute(request);
    EXPECT_EQ(request.status, Errc::ok) << static_cast<int>(request.op) << port->failure();
  }
  EXPECT_TRUE(buffers.same());
  Request read = make(Op::read, 0, buffers.bytes, buffers.read);
  port->execute(read);
  EXPECT_TRUE(std::all_of(buffers.read, buffers.read + 3 * kPage,
                          [](std::byte byte) { return byte == std::byte{0}; }));
  EXPECT_TRUE(
      std::equal(buffers.read + 3 * kPage, buffers.read + 4 * kPage, buffers.written + 3 * kPage));
}

TEST_F(NbdTarget, ports_work_at_the_same_time) {
  start();
  const std::unique_ptr<Target> target = open(unix_uri());
  std::vector<std::thread> jobs;
  for (std::uint64_t job = 0; job < 6; ++job) {
    jobs.emplace_back([&target, job] { write_and_read(*target, 4, job << 20); });
  }
  for (std::thread& job : jobs) {
    job.join();
  }
}

TEST_F(NbdTarget, opening_discards_what_is_there) {
  start();
  { write_and_read(*open(unix_uri()), 16, 0); }
  EXPECT_GT(devices_[0]->stats().orig_data_size, 0U);
  const std::unique_ptr<Target> target = open(unix_uri());
  EXPECT_EQ(devices_[0]->stats().orig_data_size, 0U);
}

TEST_F(NbdTarget, reads_and_writes_longer_than_the_server_takes_go_out_in_pieces) {
  start();
  const std::unique_ptr<Target> target = open(unix_uri());
  const std::unique_ptr<Port> port = open_port(*target, 2);
  // The server's maximum is 32 MiB.
  Buffers buffers((33U << 20) / kPage, 3);
  std::vector<Request> requests{make(Op::write, kPage, buffers.bytes, buffers.written)};
  EXPECT_TRUE(run(*port, requests, 1)) << port->failure();
  requests = {make(Op::read, kPage, buffers.bytes, buffers.read)};
  EXPECT_TRUE(run(*port, requests, 1)) << port->failure();
  EXPECT_TRUE(buffers.same());
}

TEST_F(NbdTarget, a_request_that_the_server_refuses_says_so_and_the_next_one_works) {
  start();
  const std::unique_ptr<Target> target = open(unix_uri());
  const std::unique_ptr<Port> port = open_port(*target, 2);
  Buffers buffers(1, 1);
  Request past_the_end = make(Op::write, kSize, kPage, buffers.written);
  port->execute(past_the_end);
  EXPECT_EQ(past_the_end.status, Errc::no_space);
  EXPECT_EQ(port->failure(),
            "the server refused a write of 4096 bytes at byte 67108864: No space left on device");
  Request inside = make(Op::write, 0, kPage, buffers.written);
  port->execute(inside);
  EXPECT_EQ(inside.status, Errc::ok);
}

TEST_F(NbdTarget, an_export_that_is_too_small_is_named_with_both_sizes) {
  start();
  const std::string message = refusal(unix_uri(), needs(kSize + kPage));
  EXPECT_THAT(message, HasSubstr(unix_uri()));
  EXPECT_THAT(message, HasSubstr("64M (67108864 bytes), expected at least 64M (67112960 bytes)"));
}

TEST_F(NbdTarget, a_read_only_export_is_refused) {
  start();
  EXPECT_THAT(refusal(unix_uri("fixed"), needs()), HasSubstr("read-only"));
}

TEST_F(NbdTarget, what_cannot_be_connected_to_is_named) {
  start();
  const Result<std::unique_ptr<Target>> no_socket =
      open_target(config(unix_uri("first", "nobody.nbd")), needs());
  ASSERT_FALSE(no_socket);
  EXPECT_EQ(no_socket.error().code, Errc::not_found);
  EXPECT_THAT(no_socket.error().message, HasSubstr(path("nobody.nbd")));
  EXPECT_THAT(no_socket.error().message, HasSubstr("check that a server listens there"));
  EXPECT_THAT(refusal(unix_uri("unknown"), needs()), HasSubstr("/unknown?socket="));
  EXPECT_THAT(refusal("nbd+unix:///no-socket-named", needs()), HasSubstr("no-socket-named"));
}

TEST_F(NbdTarget, messages_name_the_target_once) {
  start();
  const std::string uri = unix_uri("first", "nobody.nbd");
  EXPECT_THAT(refusal(uri, needs()), StartsWith("target " + uri + ": cannot connect"));
  const auto refused = check_target(config(uri), kMiB, false);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, StartsWith("target " + uri + ": cannot connect"));
  // The runner says which target it is.
  const std::unique_ptr<Target> target = open(unix_uri());
  server_.reset();
  const auto port = target->open_port(1);
  ASSERT_FALSE(port);
  EXPECT_THAT(port.error().message, Not(HasSubstr("target")));
}

TEST_F(NbdTarget, a_server_that_never_speaks_is_given_up) {
  const int silent = Relay::bound(path("silent.nbd"));
  ASSERT_EQ(::listen(silent, 16), 0);
  NbdConnection::Options options;
  options.timeout_ms = 20;
  const Result<NbdConnection> connection =
      NbdConnection::connect(unix_uri("first", "silent.nbd"), options);
  ASSERT_FALSE(connection);
  EXPECT_THAT(connection.error().message, HasSubstr("did not finish the handshake within 20 ms"));
  ::close(silent);
}

TEST_F(NbdTarget, a_server_that_vanishes_fails_all_that_is_in_flight) {
  start();
  Relay relay(path("relay.nbd"), path("first.nbd"));
  const std::unique_ptr<Target> target = open(unix_uri("first", "relay.nbd"));
  const std::unique_ptr<Port> port = open_port(*target, 16);
  write_and_read(*open(unix_uri()), 16, 0);
  relay.close_after_requests(16 * kRequestBytes);
  Buffers buffers(40, 1);
  std::vector<Request> reads = over_pages(Op::read, 0, buffers);
  EXPECT_TRUE(run(*port, reads, 16, Errc::system));
  EXPECT_THAT(port->failure(), HasSubstr("the server closed the connection"));
}

TEST_F(NbdTarget, a_server_that_vanishes_within_an_answer_fails_the_request) {
  start();
  Relay relay(path("relay.nbd"), path("first.nbd"));
  const std::unique_ptr<Target> target = open(unix_uri("first", "relay.nbd"));
  const std::unique_ptr<Port> port = open_port(*target, 4);
  relay.close_after_answers(10);
  Buffers buffers(8, 1);
  std::vector<Request> reads = over_pages(Op::read, 0, buffers);
  EXPECT_TRUE(run(*port, reads, 4, Errc::system));
  EXPECT_THAT(port->failure(), HasSubstr("the server closed the connection"));
}

TEST_F(NbdTarget, a_server_that_has_gone_between_requests_fails_the_next_one) {
  start();
  const std::unique_ptr<Target> target = open(unix_uri());
  const std::unique_ptr<Port> port = open_port(*target, 4);
  server_.reset();
  Buffers buffers(8, 1);
  std::vector<Request> writes = over_pages(Op::write, 0, buffers);
  EXPECT_TRUE(run(*port, writes, 4, Errc::system));
  EXPECT_THAT(port->failure(), HasSubstr("the server closed the connection"));
  EXPECT_FALSE(target->open_port(1));
}

TEST_F(NbdTarget, a_port_may_go_while_requests_are_in_flight) {
  start();
  Relay relay(path("relay.nbd"), path("first.nbd"));
  const std::unique_ptr<Target> target = open(unix_uri("first", "relay.nbd"));
  std::unique_ptr<Port> port = open_port(*target, 2);
  relay.close_after_requests(1 << 20);
  Buffers buffers(2, 1);
  std::vector<Request> reads = over_pages(Op::read, 0, buffers);
  const std::array<Request*, 2> batch{&reads[0], &reads[1]};
  port->submit(batch);
  port.reset();
}

TEST_F(NbdTarget, an_export_that_holds_nothing_needs_no_consent) {
  start();
  const Result<void> empty = check_nbd_target(config(unix_uri()), kMiB, false);
  EXPECT_TRUE(empty) << empty.error().message;
}

TEST_F(NbdTarget, an_export_that_holds_data_needs_consent) {
  start();
  write_and_read(*open(unix_uri()), 16, 32 << 20);
  const Result<void> refused = check_nbd_target(config(unix_uri()), 64 * kMiB, false);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("first 64M"));
  EXPECT_THAT(refused.error().message, HasSubstr("from byte 33554432 on"));
  EXPECT_THAT(refused.error().message, HasSubstr("--yes"));
  EXPECT_TRUE(check_nbd_target(config(unix_uri()), 64 * kMiB, true));
  // No consent makes a small export large enough.
  const Result<void> too_small = check_nbd_target(config(unix_uri()), 65 * kMiB, false);
  ASSERT_FALSE(too_small);
  EXPECT_THAT(too_small.error().message, HasSubstr("a larger export"));
  // What lies beyond the run's range is nobody's business.
  EXPECT_TRUE(check_nbd_target(config(unix_uri()), 32 * kMiB, false));
}

TEST_F(NbdTarget, pages_of_zeroes_count_as_nothing) {
  start();
  const std::unique_ptr<Target> target = open(unix_uri());
  const std::unique_ptr<Port> port = open_port(*target, 1);
  Request zeroes = make(Op::allocate_zeroes, 0, 16 * kPage);
  port->execute(zeroes);
  ASSERT_EQ(zeroes.status, Errc::ok);
  EXPECT_TRUE(check_nbd_target(config(unix_uri()), kMiB, false));
}

// An nbdkit of its own behind `socket`.
class Nbdkit {
 public:
  Nbdkit(const std::string& socket, std::vector<std::string> arguments) : process_(::fork()) {
    if (process_ == 0) {
      arguments.insert(arguments.begin(), {"nbdkit", "-f", "-U", socket});
      std::vector<char*> words;
      for (std::string& argument : arguments) {
        words.push_back(argument.data());
      }
      words.push_back(nullptr);
      ::execvp("nbdkit", words.data());
      ::_exit(127);
    }
    EXPECT_TRUE(nbd::eventually([&] {
      ended_ = ::waitpid(process_, &status_, WNOHANG) == process_;
      return ended_ || nbd::RawClient::unconnected().connect(socket);
    }));
  }
  ~Nbdkit() {
    if (!ended_) {
      ::kill(process_, SIGKILL);
      EXPECT_EQ(::waitpid(process_, nullptr, 0), process_);
    }
  }
  Nbdkit(const Nbdkit&) = delete;
  Nbdkit& operator=(const Nbdkit&) = delete;

  [[nodiscard]] bool runs() const { return !ended_; }
  [[nodiscard]] bool is_missing() const { return ended_ && WEXITSTATUS(status_) == 127; }

 private:
  const pid_t process_;
  bool ended_ = false;
  int status_ = 0;
};

TEST_F(NbdTarget, a_server_that_does_not_tell_what_it_holds_needs_consent) {
  const Nbdkit server(path("plain.nbd"), {"--no-sr", "memory", "64M"});
  if (server.is_missing()) {
    GTEST_SKIP() << "nbdkit is not installed (Debian package nbdkit)";
  }
  ASSERT_TRUE(server.runs());
  const std::string uri = unix_uri("", "plain.nbd");
  const Result<void> refused = check_nbd_target(config(uri), kMiB, false);
  EXPECT_TRUE(!refused && refused.error().message.find("--yes") != std::string::npos);
  EXPECT_TRUE(check_nbd_target(config(uri), kMiB, true));
  write_and_read(*open(uri), 16, 0);
}

TEST_F(NbdTarget, the_reason_is_that_of_the_last_failed_request) {
  const Nbdkit fixed(path("fixed.nbd"), {"eval", "get_size=echo 8M", "pread=exit 1",
                                         "pwrite=cat >/dev/null; echo ENOSPC >&2; exit 1"});
  if (fixed.is_missing()) {
    GTEST_SKIP() << "nbdkit is not installed (Debian package nbdkit)";
  }
  ASSERT_TRUE(fixed.runs());
  auto connection = NbdConnection::connect(unix_uri("", "fixed.nbd"));
  ASSERT_TRUE(connection) << connection.error().message;
  NbdPort port(*std::move(connection), 1);
  Buffers buffers(1, 1);
  Request discard = make(Op::discard, 0, kPage);
  Request write = make(Op::write, 0, kPage, buffers.written);
  for (int i = 0; i < 2; ++i) {
    port.execute(discard);
    EXPECT_EQ(discard.status, Errc::unsupported);
    EXPECT_EQ(port.failure(), "the server does not offer a discard");
    port.execute(write);
    EXPECT_EQ(write.status, Errc::no_space);
    EXPECT_THAT(port.failure(), StartsWith("the server refused a write of 4096 bytes at byte 0: "));
  }
}

// Whatever the server has to make it so.
TEST_F(NbdTarget, its_range_is_empty_and_the_rest_as_it_was) {
  const std::string file = path("disk");
  const std::string dd = "dd if=/dev/stdin of=" + file +
                         " bs=1M iflag=fullblock seek=$4 oflag=seek_bytes conv=notrunc 2>/dev/null";
  const std::vector<std::string> by_writes = {
      "eval", "get_size=echo 8M", "pwrite=" + dd,
      "pread=dd if=" + file + " bs=1M skip=$4 count=$3 iflag=skip_bytes,count_bytes 2>/dev/null"};
  std::vector<std::string> for_show = by_writes;
  for_show.insert(for_show.end(), {"can_trim=exit 0", "trim=exit 0"});
  const struct {
    const char* socket;
    std::vector<std::string> arguments;
    bool zeroed;
  } servers[] = {{"trims.nbd", {"memory", "8M"}, false},
                 {"zeroes.nbd", {"--filter=nozero", "memory", "8M"}, false},
                 {"writes.nbd", by_writes, true},
                 {"shows.nbd", for_show, true}};
  for (const auto& each : servers) {
    std::ofstream(file).close();
    std::filesystem::resize_file(file, 8 * kMiB);
    const Nbdkit server(path(each.socket), each.arguments);
    if (server.is_missing()) {
      GTEST_SKIP() << "nbdkit is not installed (Debian package nbdkit)";
    }
    ASSERT_TRUE(server.runs()) << each.socket;
    const std::string uri = unix_uri("", each.socket);
    const auto connection = NbdConnection::connect(uri);
    ASSERT_TRUE(connection) << connection.error().message;
    const std::vector<std::byte> content(kPage, std::byte{7});
    ASSERT_EQ(nbd_pwrite(connection->handle(), content.data(), kPage, 0, 0), 0);
    ASSERT_EQ(nbd_pwrite(connection->handle(), content.data(), kPage, 4 * kMiB, 0), 0);
    const auto target = open_target(config(uri), needs(4 * kMiB));
    ASSERT_TRUE(target) << target.error().message;
    EXPECT_EQ((*target)->info().zeroed, each.zeroed) << each.socket;
    std::vector<std::byte> found(kPage);
    ASSERT_EQ(nbd_pread(connection->handle(), found.data(), kPage, 0, 0), 0);
    EXPECT_EQ(found, std::vector<std::byte>(kPage)) << each.socket;
    ASSERT_EQ(nbd_pread(connection->handle(), found.data(), kPage, 4 * kMiB, 0), 0);
    EXPECT_EQ(found, content) << each.socket;
  }
}

TEST_F(NbdTarget, a_server_in_this_process_is_no_server_of_its_own) {
  start();
  const std::unique_ptr<Target> target = open(unix_uri());
  EXPECT_FALSE(target->server());
  EXPECT_FALSE(target->memory().peak);
}

TEST_F(NbdTarget, the_server_process_is_found_and_its_peak_memory_read) {
  start();
  // The kernel reports who called listen.
  const int socket = Relay::bound(path("relay.nbd"));
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::listen(socket, 16);
    ::close(ready[1]);
    while (true) {
      ::pause();
    }
  }
  ::close(ready[1]);
  char nothing = 0;
  EXPECT_EQ(::read(ready[0], &nothing, 1), 0);
  ::close(ready[0]);
  {
    Relay relay(path("relay.nbd"), path("first.nbd"), socket);
    const std::unique_ptr<Target> target = open(unix_uri("first", "relay.nbd"));
    EXPECT_EQ(target->server(), child);
    EXPECT_GT(target->memory().peak.value_or(0), 0U);
    EXPECT_FALSE(target->memory().mem_used_total);
  }
  ::kill(child, SIGKILL);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace uzram::bench
