//! The generator of random numbers for the seeded data: SplitMix64.
//! Invariant: the sequence depends only on the seed, so it is the same on every platform and in every build.

/// A stream of pseudorandom numbers. Its quality is sufficient for generated data, but not for secrets.
pub struct Prng(u64);

impl Prng {
    /// Returns the stream for one table of the data. Each table has its own stream, so that a change of one table does not change others.
    pub fn stream(seed: u64, table: &str) -> Prng {
        let mut prng = Prng(seed);
        for byte in table.bytes() {
            prng.0 ^= u64::from(byte);
            prng.number();
        }
        prng
    }

    /// Returns the next number of the sequence.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number in `0..n`, or 0 if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        let wide = u128::from(self.number()) * u128::from(n);
        (wide >> 64) as u64
    }

    /// Returns true with a probability of `percent` in a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Returns one of `items`. An empty list is a panic; all callers pass constant lists or lists made from them.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        // These are the published test values of SplitMix64 for the seed 1234567.
        let mut prng = Prng(1_234_567);
        assert_eq!(prng.number(), 6_457_827_717_110_365_317);
        assert_eq!(prng.number(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn below_stays_under_its_bound() {
        let mut prng = Prng::stream(1, "test");
        assert!((0..1000).all(|_| prng.below(7) < 7));
        assert_eq!(prng.below(0), 0);
    }

    #[test]
    fn each_table_has_its_own_stream() {
        assert_ne!(Prng::stream(1, "tickets").number(), Prng::stream(1, "comments").number());
    }
}
