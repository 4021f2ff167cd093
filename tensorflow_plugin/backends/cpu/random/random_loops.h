// Philox a block of groups at a time, once per instruction set (isa.h).

// kBlock groups from the generator's place on, kLanes counters at a time. Integer arithmetic: every instruction set
// gives the same words.
inline void GenerateBlock(uint64_t low, uint64_t high, uint64_t key, uint32_t* out) {
  for (int b = 0; b < kBlock; b += kLanes) {
    uint32_t c0[kLanes], c1[kLanes], c2[kLanes], c3[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      const uint64_t l = low + static_cast<uint64_t>(b + i);
      const uint64_t h = high + (l < low);
      c0[i] = static_cast<uint32_t>(l);
      c1[i] = static_cast<uint32_t>(l >> 32);
      c2[i] = static_cast<uint32_t>(h);
      c3[i] = static_cast<uint32_t>(h >> 32);
    }
    uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < Philox::kRounds; ++round) {
      for (int i = 0; i < kLanes; ++i) {
        const uint64_t p0 = static_cast<uint64_t>(Philox::kMultiplier0) * c0[i];
        const uint64_t p1 = static_cast<uint64_t>(Philox::kMultiplier1) * c2[i];
        c0[i] = static_cast<uint32_t>(p1 >> 32) ^ c1[i] ^ k0;
        c1[i] = static_cast<uint32_t>(p1);
        c2[i] = static_cast<uint32_t>(p0 >> 32) ^ c3[i] ^ k1;
        c3[i] = static_cast<uint32_t>(p0);
      }
      k0 += Philox::kWeyl0;
      k1 += Philox::kWeyl1;
    }
    for (int i = 0; i < kLanes; ++i) {
      out[4 * (b + i)] = c0[i];
      out[4 * (b + i) + 1] = c1[i];
      out[4 * (b + i) + 2] = c2[i];
      out[4 * (b + i) + 3] = c3[i];
    }
  }
}
