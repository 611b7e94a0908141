#include "os/background_thread.hpp"

#include <csignal>
#include <system_error>
#include <utility>

#include <pthread.h>

namespace uzram::os {

Result<std::thread> start_background_thread(const std::string& name, std::function<void()> work) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  // A thread begins with the mask of the one that starts it.
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  Result<std::thread> started = Error{};
  try {
    std::thread thread(std::move(work));
    ::pthread_setname_np(thread.native_handle(), name.substr(0, 15).c_str());
    started = std::move(thread);
  } catch (const std::system_error& error) {
    started = system_error("thread " + name, error.code().value());
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace uzram::os
