#include "env/snapshot.hpp"

#include "check.hpp"
#include "toy_design.hpp"

using placement::ByteReader;
using placement::ByteWriter;

TEST(snapshot_bytes_come_back) {
  ByteWriter writer;
  writer.raw("MAGIC", 5);
  writer.u8(200);
  writer.u32(0x01020304);
  writer.u64(1ull << 63);
  writer.f64(-0.1);
  const std::string bytes = writer.sealed();
  CHECK(bytes[6] == 4 && bytes[9] == 1);  // little-endian
  ByteReader reader(bytes);
  CHECK(reader.matches("MAGIC", 5) && reader.u8() == 200 && reader.u32() == 0x01020304);
  CHECK(reader.u64() == 1ull << 63 && reader.f64() == -0.1);
  reader.finish();
  CHECK_THROWS(reader.u8(), std::invalid_argument);
}

TEST(snapshot_damage_is_found) {
  ByteWriter writer;
  writer.u64(7);
  const std::string bytes = writer.sealed();
  CHECK_THROWS(ByteReader(bytes.substr(1)), std::invalid_argument);
  CHECK_THROWS(ByteReader(std::string()), std::invalid_argument);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    CHECK_THROWS(ByteReader(damaged), std::invalid_argument);
  }
  ByteReader whole(bytes);
  CHECK_THROWS(whole.finish(), std::invalid_argument);
}

TEST(snapshot_fingerprints_tell_designs_apart) {
  CHECK(placement::fingerprint(*toy_design()) == placement::fingerprint(*toy_design()));
  CHECK(placement::fingerprint(*toy_design()) != placement::fingerprint(*toy_design(8, 7)));
  placement::Design other = *toy_design();
  other.pin_dx[2] += 1e-12;
  CHECK(placement::fingerprint(other) != placement::fingerprint(*toy_design()));
}
