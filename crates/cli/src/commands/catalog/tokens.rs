//! How many tokens a text is, as o200k counts them.
//! Invariant: nothing is fetched; the vocabulary is part of the binary.

/// Reading the vocabulary takes a moment, the first time.
pub fn count(text: &str) -> usize {
    tiktoken_rs::o200k_base_singleton().count_ordinary(text)
}

#[cfg(test)]
mod tests {
    use super::count;

    /// Counts from the vocabulary's makers, so that it is this one and no other.
    #[test]
    fn counts_of_o200k() {
        assert_eq!(count(""), 0);
        assert_eq!(count("hello world"), 2);
        assert_eq!(count("tiktoken is great!"), 6);
        assert_eq!(count("お誕生日おめでとう"), 8);
        assert_eq!(count("<|endoftext|>"), 7, "a word of the text, never a sign of the protocol");
    }
}
