#include "control/control_client.hpp"

#include <cerrno>
#include <exception>

#include <httplib.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <sys/un.h>

namespace uzram::control {
namespace {

// The message of {"error":{"message":…}}, or the whole body when it is of another form.
std::string message_of(const std::string& body) {
  const nlohmann::json parsed = nlohmann::json::parse(body, nullptr, false);
  const nlohmann::json::json_pointer where("/error/message");
  if (parsed.is_object() && parsed.contains(where) && parsed.at(where).is_string()) {
    return parsed.at(where).get<std::string>();
  }
  return body;
}

}  // namespace

Result<std::string> get(const std::string& control_path, const std::string& resource) {
  const std::string what = "control socket \"" + control_path + "\"";
  if (control_path.empty() || control_path.size() >= sizeof(sockaddr_un::sun_path)) {
    return Error{Errc::invalid_argument, 0,
                 what + ": expected a path of 1 to " +
                     std::to_string(sizeof(sockaddr_un::sun_path) - 1) + " bytes"};
  }
  try {
    httplib::Client client(control_path);
    client.set_address_family(AF_UNIX);
    errno = 0;
    const httplib::Result answer = client.Get(resource);
    if (!answer) {
      const int problem = errno;
      if (answer.error() == httplib::Error::Connection) {
        if (problem == EACCES || problem == EPERM) {
          return system_error(what, problem);
        }
        return Error{Errc::not_found, problem,
                     what +
                         ": no server answers there; start one with `uzram serve`, or name its "
                         "socket with --control"};
      }
      return Error{Errc::system, problem, what + ": " + httplib::to_string(answer.error())};
    }
    if (answer->status != 200) {
      return Error{answer->status == 404 ? Errc::not_found : Errc::system, 0,
                   message_of(answer->body)};
    }
    return answer->body;
  } catch (const std::exception& failure) {
    return Error{Errc::system, 0, what + ": " + failure.what()};
  }
}

}  // namespace uzram::control
