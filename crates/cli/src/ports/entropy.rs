//! The system's randomness.
//! Invariant: unpredictable; a UUID v4 has 122 random bits from the operating system.

use ports::Entropy;

pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn bytes(&self) -> [u8; 16] {
        *uuid::Uuid::new_v4().as_bytes()
    }
}
