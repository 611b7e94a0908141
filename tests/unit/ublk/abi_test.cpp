// The numbers of abi.hpp are those of the kernel's header, as far as this machine's has them.
#include "frontend/ublk/abi.hpp"

#include <gtest/gtest.h>
#include <linux/ublk_cmd.h>

namespace uzram::ublk {
namespace {

TEST(Abi, structures_are_laid_out_as_the_kernel_s) {
  EXPECT_EQ(sizeof(ControlCommand), sizeof(ublksrv_ctrl_cmd));
  EXPECT_EQ(offsetof(ControlCommand, address), offsetof(ublksrv_ctrl_cmd, addr));
  EXPECT_EQ(offsetof(ControlCommand, data), offsetof(ublksrv_ctrl_cmd, data));
  EXPECT_EQ(sizeof(DeviceInfo), sizeof(ublksrv_ctrl_dev_info));
  EXPECT_EQ(offsetof(DeviceInfo, max_io_bytes), offsetof(ublksrv_ctrl_dev_info, max_io_buf_bytes));
  EXPECT_EQ(offsetof(DeviceInfo, server_pid), offsetof(ublksrv_ctrl_dev_info, ublksrv_pid));
  EXPECT_EQ(offsetof(DeviceInfo, server_flags), offsetof(ublksrv_ctrl_dev_info, ublksrv_flags));
  EXPECT_EQ(sizeof(IoDescriptor), sizeof(ublksrv_io_desc));
  EXPECT_EQ(offsetof(IoDescriptor, start_sector), offsetof(ublksrv_io_desc, start_sector));
  EXPECT_EQ(sizeof(IoCommand), sizeof(ublksrv_io_cmd));
  EXPECT_EQ(offsetof(IoCommand, result), offsetof(ublksrv_io_cmd, result));
  EXPECT_EQ(offsetof(Parameters, attributes), offsetof(ublk_params, basic));
  EXPECT_EQ(offsetof(Parameters, device_sectors),
            offsetof(ublk_params, basic) + offsetof(ublk_param_basic, dev_sectors));
  EXPECT_EQ(offsetof(Parameters, discard_alignment), offsetof(ublk_params, discard));
  EXPECT_EQ(offsetof(Parameters, max_discard_segments),
            offsetof(ublk_params, discard) + offsetof(ublk_param_discard, max_discard_segments));
}

TEST(Abi, numbers_are_the_kernel_s) {
  EXPECT_EQ(static_cast<int>(ControlOp::add_dev), UBLK_CMD_ADD_DEV);
  EXPECT_EQ(static_cast<int>(ControlOp::del_dev), UBLK_CMD_DEL_DEV);
  EXPECT_EQ(static_cast<int>(ControlOp::start_dev), UBLK_CMD_START_DEV);
  EXPECT_EQ(static_cast<int>(ControlOp::stop_dev), UBLK_CMD_STOP_DEV);
  EXPECT_EQ(static_cast<int>(ControlOp::set_params), UBLK_CMD_SET_PARAMS);
  EXPECT_EQ(static_cast<int>(ControlOp::get_dev_info), UBLK_CMD_GET_DEV_INFO);
  EXPECT_EQ(static_cast<int>(ControlOp::get_queue_affinity), UBLK_CMD_GET_QUEUE_AFFINITY);
  EXPECT_EQ(static_cast<int>(IoOp::fetch), UBLK_IO_FETCH_REQ);
  EXPECT_EQ(static_cast<int>(IoOp::commit_and_fetch), UBLK_IO_COMMIT_AND_FETCH_REQ);
  EXPECT_EQ(static_cast<int>(IoOp::need_get_data), UBLK_IO_NEED_GET_DATA);
  EXPECT_EQ(kIoReady, UBLK_IO_RES_OK);
  EXPECT_EQ(kIoNeedsData, UBLK_IO_RES_NEED_GET_DATA);
  EXPECT_EQ(kMaxDepth, static_cast<std::uint32_t>(UBLK_MAX_QUEUE_DEPTH));
  EXPECT_EQ(kNeedGetData, static_cast<std::uint64_t>(UBLK_F_NEED_GET_DATA));
  EXPECT_EQ(kHasBasic, static_cast<std::uint32_t>(UBLK_PARAM_TYPE_BASIC));
  EXPECT_EQ(kHasDiscard, static_cast<std::uint32_t>(UBLK_PARAM_TYPE_DISCARD));
  EXPECT_EQ(kReadOnly, static_cast<std::uint32_t>(UBLK_ATTR_READ_ONLY));
  EXPECT_EQ(kNoUnmap, static_cast<std::uint32_t>(UBLK_IO_F_NOUNMAP));
  EXPECT_EQ(static_cast<int>(IoKind::write_zeroes), UBLK_IO_OP_WRITE_ZEROES);
  EXPECT_EQ(static_cast<int>(IoKind::discard), UBLK_IO_OP_DISCARD);
}

TEST(Abi, ioctl_numbers_say_direction_size_and_kind) {
  // _IOC(direction, 'u', number, size), as the kernel has it from 6.4 on.
  const auto ioctl_number = [](unsigned direction, unsigned number, unsigned size) {
    return (direction << 30) | (size << 16) | (unsigned{'u'} << 8) | number;
  };
  EXPECT_EQ(kReadsControl | 0x13, ioctl_number(2, 0x13, sizeof(ControlCommand)));
  EXPECT_EQ(kWritesControl | 0x04, ioctl_number(3, 0x04, sizeof(ControlCommand)));
  EXPECT_EQ(kWritesIo | 0x20, ioctl_number(3, 0x20, sizeof(IoCommand)));
}

TEST(Abi, data_of_tags_and_queues_does_not_overlap) {
  EXPECT_EQ(data_offset(0, 0), std::uint64_t{UBLKSRV_IO_BUF_OFFSET});
  EXPECT_EQ(data_offset(0, 1) - data_offset(0, 0), kMaxIoBytes);
  EXPECT_EQ(data_offset(1, 0) - data_offset(0, 0), std::uint64_t{1} << 41);
  EXPECT_LT(data_offset(3, kMaxDepth - 1) + kMaxIoBytes, data_offset(4, 0));
  EXPECT_EQ(descriptors_offset(2), 2U * 98'304);
}

}  // namespace
}  // namespace uzram::ublk
