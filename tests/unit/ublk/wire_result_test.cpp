#include "frontend/ublk/wire_result.hpp"

#include <cerrno>

#include <gtest/gtest.h>

namespace uzram::ublk {
namespace {

TEST(WireResult, errors_are_those_the_block_layer_knows) {
  EXPECT_EQ(wire_error(Errc::ok), 0);
  EXPECT_EQ(wire_error(Errc::no_space), -ENOSPC);
  EXPECT_EQ(wire_error(Errc::unsupported), -EOPNOTSUPP);
  for (const Errc code :
       {Errc::invalid_argument, Errc::out_of_range, Errc::corrupt, Errc::read_only, Errc::busy,
        Errc::exists, Errc::not_found, Errc::incompressible, Errc::system}) {
    EXPECT_EQ(wire_error(code), -EIO);
  }
}

}  // namespace
}  // namespace uzram::ublk
