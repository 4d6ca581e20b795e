// SPDX-License-Identifier: Apache-2.0
#include "daemon/keeper/pool_claim.h"

#include <fcntl.h>

namespace memtuned {
namespace {

struct flock FirstByte(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  return lock;
}

}  // namespace

void ClaimPool(int metadata) {
  struct flock lock = FirstByte(F_RDLCK);
  fcntl(metadata, F_SETLK, &lock);
}

bool IsClaimed(int metadata) {
  struct flock lock = FirstByte(F_WRLCK);
  return fcntl(metadata, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

}  // namespace memtuned
