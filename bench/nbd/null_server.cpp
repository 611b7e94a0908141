// nbd_null_server SOCKET [SIZE_BYTES]: an NBD server that answers and touches no data.
//
// Role: the ceiling of what a client can reach over a Unix socket on this machine: reads are
// answered with what the reply buffer happens to hold, writes are received and forgotten.
// Structured replies are sent to clients that ask for them: they take more calls to receive. One
// thread for each connection; all requests that one receive brings are answered by one send. Ends
// by a signal.
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "frontend/nbd/protocol.hpp"

namespace {

using namespace uzram::nbd;

constexpr std::uint64_t kDefaultSize = std::uint64_t{64} << 30;
constexpr std::size_t kBufferBytes = std::size_t{4} << 20;
constexpr std::uint16_t kExportFlags =
    kHasFlags | kSendFlush | kSendFua | kSendTrim | kSendWriteZeroes | kCanMultiConn;

bool send_all(int fd, const std::byte* data, std::size_t size) {
  while (size != 0) {
    const ssize_t sent = ::send(fd, data, size, MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) {
      return false;
    }
    data += sent < 0 ? 0 : sent;
    size -= sent < 0 ? 0 : static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int fd, std::byte* data, std::size_t size) {
  while (size != 0) {
    const ssize_t got = ::recv(fd, data, size, MSG_WAITALL);
    if (got == 0 || (got < 0 && errno != EINTR)) {
      return false;
    }
    data += got < 0 ? 0 : got;
    size -= got < 0 ? 0 : static_cast<std::size_t>(got);
  }
  return true;
}

bool reply_to_option(int fd, std::uint32_t option, OptionReply kind, const std::byte* data,
                     std::uint32_t size) {
  std::array<std::byte, kOptionReplyHeaderBytes> header{};
  std::byte* at = store_be(header.data(), kOptionReplyMagic);
  at = store_be(at, option);
  at = store_be(at, static_cast<std::uint32_t>(kind));
  store_be(at, size);
  return send_all(fd, header.data(), header.size()) && (size == 0 || send_all(fd, data, size));
}

struct Agreement {
  bool begins = false;
  bool structured_replies = false;
};

// Options until one of them begins the transmission.
Agreement shake_hands(int fd, std::uint64_t size_bytes) {
  constexpr std::uint64_t kInitPasswd = 0x4e42444d41474943;
  constexpr std::uint64_t kOptionMagic = 0x49484156454f5054;
  std::array<std::byte, 18> greeting{};
  std::byte* at = store_be(greeting.data(), kInitPasswd);
  at = store_be(at, kOptionMagic);
  store_be(at, static_cast<std::uint16_t>(kFlagFixedNewstyle | kFlagNoZeroes));
  std::array<std::byte, 4> flags{};
  if (!send_all(fd, greeting.data(), greeting.size()) ||
      !receive_all(fd, flags.data(), flags.size())) {
    return {};
  }
  Agreement agreed;
  while (true) {
    std::array<std::byte, kOptionHeaderBytes> header{};
    if (!receive_all(fd, header.data(), header.size())) {
      return {};
    }
    const auto option = load_be<std::uint32_t>(header.data() + 8);
    const auto length = load_be<std::uint32_t>(header.data() + 12);
    std::vector<std::byte> data(length);
    if (length > kMaxOptionBytes || !receive_all(fd, data.data(), data.size())) {
      return {};
    }
    std::array<std::byte, 12> info{};
    if (option == static_cast<std::uint32_t>(Option::go)) {
      at = store_be(info.data(), static_cast<std::uint16_t>(Info::export_size));
      at = store_be(at, size_bytes);
      store_be(at, kExportFlags);
      agreed.begins = reply_to_option(fd, option, OptionReply::info, info.data(), info.size()) &&
                      reply_to_option(fd, option, OptionReply::ack, nullptr, 0);
      return agreed;
    }
    if (option == static_cast<std::uint32_t>(Option::export_name)) {
      at = store_be(info.data(), size_bytes);
      store_be(at, kExportFlags);
      agreed.begins = send_all(fd, info.data(), 10);
      return agreed;
    }
    if (option == static_cast<std::uint32_t>(Option::structured_reply)) {
      agreed.structured_replies = true;
      if (!reply_to_option(fd, option, OptionReply::ack, nullptr, 0)) {
        return {};
      }
      continue;
    }
    if (option == static_cast<std::uint32_t>(Option::abort) ||
        !reply_to_option(fd, option, OptionReply::err_unsup, nullptr, 0)) {
      return {};
    }
  }
}

// What has been received and not looked at, and what is to be sent.
class Connection {
 public:
  Connection(int fd, bool structured_replies)
      : fd_(fd),
        structured_replies_(structured_replies),
        input_(kBufferBytes),
        output_(2 * kBufferBytes) {}

  void serve() {
    while (receive()) {
      if (!answer() || !send_all(fd_, output_.data(), filled_)) {
        return;
      }
      filled_ = 0;
    }
  }

 private:
  bool receive() {
    if (begin_ != 0) {
      std::memmove(input_.data(), input_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    const ssize_t got = ::recv(fd_, input_.data() + end_, input_.size() - end_, 0);
    end_ += got > 0 ? static_cast<std::size_t>(got) : 0;
    return got > 0 || (got < 0 && errno == EINTR);
  }

  // All whole requests. False: the client is done.
  bool answer() {
    while (end_ - begin_ >= kRequestHeaderBytes) {
      const std::byte* const header = input_.data() + begin_;
      const auto command = static_cast<Command>(load_be<std::uint16_t>(header + 6));
      const auto length = load_be<std::uint32_t>(header + 24);
      const std::size_t payload = command == Command::write ? length : 0;
      const bool chunk = command == Command::read && structured_replies_;
      const std::size_t reply = (chunk ? kChunkHeaderBytes + 8 : kSimpleReplyBytes) +
                                (command == Command::read ? length : 0);
      if (command == Command::disc || payload > kBufferBytes / 2 || reply > kBufferBytes) {
        return false;
      }
      if (end_ - begin_ < kRequestHeaderBytes + payload) {
        return true;
      }
      if (output_.size() - filled_ < reply) {
        if (!send_all(fd_, output_.data(), filled_)) {
          return false;
        }
        filled_ = 0;
      }
      std::byte* at = output_.data() + filled_;
      if (chunk) {
        at = store_be(at, kStructuredReplyMagic);
        at = store_be(at, kChunkDone);
        at = store_be(at, static_cast<std::uint16_t>(Chunk::offset_data));
        std::memcpy(at, header + 8, 8);
        at = store_be(at + 8, 8 + length);
        std::memcpy(at, header + 16, 8);
      } else {
        at = store_be(at, kSimpleReplyMagic);
        at = store_be(at, static_cast<std::uint32_t>(WireError::ok));
        std::memcpy(at, header + 8, 8);
      }
      filled_ += reply;
      begin_ += kRequestHeaderBytes + payload;
    }
    return true;
  }

  const int fd_;
  const bool structured_replies_;
  std::vector<std::byte> input_;
  std::vector<std::byte> output_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t filled_ = 0;
};

int fail(const char* what) {
  std::perror(what);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (argc < 2 || argc > 3 || std::strlen(argv[1]) >= sizeof address.sun_path) {
    std::fprintf(stderr, "usage: nbd_null_server SOCKET [SIZE_BYTES]\n");
    return 2;
  }
  const std::uint64_t size_bytes = argc == 3 ? std::strtoull(argv[2], nullptr, 10) : kDefaultSize;
  std::strcpy(address.sun_path, argv[1]);
  ::unlink(argv[1]);
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0 ||
      ::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener, 64) != 0) {
    return fail(argv[1]);
  }
  while (true) {
    const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0 && errno != EINTR) {
      return fail("accept");
    }
    std::thread([fd, size_bytes] {
      constexpr int kSendBytes = 1 << 20;
      ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSendBytes, sizeof kSendBytes);
      if (const Agreement agreed = shake_hands(fd, size_bytes); agreed.begins) {
        Connection(fd, agreed.structured_replies).serve();
      }
      ::close(fd);
    }).detach();
  }
}
