//! Randomness for ids and handles.
//! Invariant: a real implementation is unpredictable to callers; a test's is a counter.

/// The source of random bytes.
pub trait Entropy: Send + Sync {
    fn bytes(&self) -> [u8; 16];
}
