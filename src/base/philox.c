/*
 * Philox4x32-10. Invariant: no state; equal arguments give equal words on every
 * machine. Checked against the known answers of the authors' library.
 */
#include "base/philox.h"

static uint64_t mix(uint64_t h, uint64_t value)
{
    /* The finaliser of splitmix64: a bijection, so equal seeds, domains,
     * replicas and steps are the only way to equal keys in practice. */
    h = (h ^ value) + 0x9E3779B97F4A7C15u;
    h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9u;
    h = (h ^ (h >> 27)) * 0x94D049BB133111EBu;
    return h ^ (h >> 31);
}

uint64_t ls__draw_key(uint64_t seed, ls__draw_domain domain, int64_t replica, int64_t step)
{
    uint64_t h = mix(0, seed);
    h = mix(h, (uint64_t)domain);
    h = mix(h, (uint64_t)replica);
    return mix(h, (uint64_t)step);
}

void ls__philox4x32_10(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

void ls__philox_block(const ls__draw *draw, uint64_t block, uint32_t out[4])
{
    const uint32_t counter[4] = { (uint32_t)block, (uint32_t)(block >> 32),
                                  (uint32_t)draw->ordinal, (uint32_t)(draw->ordinal >> 32) };
    const uint32_t key[2] = { (uint32_t)draw->key, (uint32_t)(draw->key >> 32) };
    ls__philox4x32_10(counter, key, out);
}
