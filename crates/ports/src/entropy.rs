//! The port of randomness, for ids and handles.
//! Invariant: callers cannot predict the bytes of a real implementation. Tests use a counter instead.

/// The source of random bytes.
pub trait Entropy: Send + Sync {
    /// Returns 16 bytes that were never returned before.
    fn bytes(&self) -> [u8; 16];
}
