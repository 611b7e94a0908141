#include "frontend/nbd/wire_error.hpp"

#include <gtest/gtest.h>

namespace uzram::nbd {
namespace {

TEST(WireError, a_range_beyond_the_end_is_enospc_to_writers_and_einval_to_others) {
  EXPECT_EQ(wire_error(Errc::out_of_range, Command::write), WireError::enospc);
  EXPECT_EQ(wire_error(Errc::out_of_range, Command::write_zeroes), WireError::enospc);
  EXPECT_EQ(wire_error(Errc::out_of_range, Command::read), WireError::einval);
  EXPECT_EQ(wire_error(Errc::out_of_range, Command::trim), WireError::einval);
}

TEST(WireError, a_full_store_is_enospc_and_corrupt_data_eio) {
  EXPECT_EQ(wire_error(Errc::no_space, Command::write), WireError::enospc);
  EXPECT_EQ(wire_error(Errc::corrupt, Command::read), WireError::eio);
  EXPECT_EQ(wire_error(Errc::read_only, Command::write), WireError::eperm);
}

TEST(WireError, enotsup_is_for_zeroing_only) {
  EXPECT_EQ(wire_error(Errc::unsupported, Command::write_zeroes), WireError::enotsup);
  EXPECT_EQ(wire_error(Errc::unsupported, Command::trim), WireError::einval);
}

TEST(WireError, only_success_is_reported_as_success) {
  for (const Errc code : {Errc::invalid_argument, Errc::out_of_range, Errc::no_space, Errc::corrupt,
                          Errc::read_only, Errc::unsupported, Errc::busy, Errc::exists,
                          Errc::not_found, Errc::incompressible, Errc::system}) {
    EXPECT_NE(wire_error(code, Command::read), WireError::ok) << errno_name(code);
  }
  EXPECT_EQ(wire_error(Errc::ok, Command::read), WireError::ok);
}

}  // namespace
}  // namespace uzram::nbd
