//! Randomness for ids and handles.
//! Invariant: a real implementation is unpredictable to callers; a test's is a counter.

pub trait Entropy: Send + Sync {
    fn bytes(&self) -> [u8; 16];
}
