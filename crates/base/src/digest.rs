//! SHA-256 digests, which name immutable data such as blobs, catalogs and plans.
//! Invariant: the text form of a digest is 64 lowercase hex characters. `parse` refuses any other text.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The SHA-256 digest of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

/// The error of [`Digest::parse`]: the text is not the text form of a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the text is not a digest; a digest is 64 lowercase hex characters")]
pub struct DigestError;

impl Digest {
    /// Returns the digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Reads the text form. Upper case is refused, because digests are keys in storage, and two spellings would be
    /// two keys.
    pub fn parse(text: &str) -> Result<Self, DigestError> {
        let hex = text.as_bytes();
        if hex.len() != 64 {
            return Err(DigestError);
        }
        let mut bytes = [0u8; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
            *byte = hex_digit_value(pair[0])? << 4 | hex_digit_value(pair[1])?;
        }
        Ok(Self(bytes))
    }

    /// Returns the digest with these 32 bytes, which a binary format stored.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Compares two digests in constant time, so that an attacker cannot measure how many leading bytes match.
    pub fn constant_time_eq(&self, other: &Self) -> bool {
        // `black_box` keeps the compiler from ending the loop at the first difference.
        std::hint::black_box(
            self.0.iter().zip(other.0).fold(0, |difference, (left, right)| difference | (left ^ right)),
        ) == 0
    }

    /// Returns the first twelve hex characters, which are enough for a person to recognise a digest.
    pub fn short(&self) -> String {
        self.to_string().chars().take(12).collect()
    }
}

const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";

fn hex_digit_value(hex: u8) -> Result<u8, DigestError> {
    match hex {
        b'0'..=b'9' => Ok(hex - b'0'),
        b'a'..=b'f' => Ok(hex - b'a' + 10),
        _ => Err(DigestError),
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Every plan and blob writes its digest, so a lookup table is used, which is much faster than formatting each
        // byte.
        let mut hex = [0u8; 64];
        for (pair, byte) in hex.chunks_exact_mut(2).zip(self.0) {
            pair[0] = HEX_DIGITS[usize::from(byte >> 4)];
            pair[1] = HEX_DIGITS[usize::from(byte & 15)];
        }
        f.write_str(str::from_utf8(&hex).unwrap_or_default())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;
    fn try_from(text: String) -> Result<Self, DigestError> {
        Self::parse(&text)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> String {
        digest.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_matches_the_published_value_and_reads_back() {
        let digest = Digest::of(b"abc");
        assert_eq!(digest.to_string(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(Digest::parse(&digest.to_string()), Ok(digest));
        assert!(digest.constant_time_eq(&digest) && !digest.constant_time_eq(&Digest::of(b"abd")));
    }

    #[test]
    fn only_canonical_hex_is_a_digest() {
        let upper = Digest::of(b"abc").to_string().to_uppercase();
        for bad in ["", "ba78", "../../etc/passwd", &upper, &"é".repeat(32)] {
            assert_eq!(Digest::parse(bad), Err(DigestError), "{bad}");
        }
    }
}
