//! The binary format of `secrets.enc`, read and written without a key.
//!
//! Invariants:
//! - A file that is not whole and unchanged is an error before any part of it is used.
//! - No length in the file is used before it is compared with the number of bytes that exist.
//! - Every version of the format begins with the same mark and its version.
//!
//! ```text
//! mark 8 · version u16 · length of the file u64 · Argon2id memory, passes, lanes u32 each · salt 16 · key check 32
//! count u32 · each: tenant and name (u8 length before each), nonce 24, sealed value (u32 length before it)
//! seal 40 (nonce and tag over everything before it) · SHA-256 32 of everything before it
//! ```
//! Numbers are little-endian. The checksum tells accidental damage from a wrong key. It does not protect against a person
//! who changes the file: the tags of the cipher do.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::error::Error;

pub const VERSION: u16 = 1;
const MARK: &[u8; 8] = b"TOKAMAK\x1a";
const LENGTH_AT: usize = MARK.len() + 2;
const HEADER_AT: usize = LENGTH_AT + 8;
pub const NONCE: usize = 24;
pub const TAG: usize = 16;
const SEAL: usize = NONCE + TAG;
const CHECKSUM: usize = 32;

/// The cost of deriving the key with Argon2id. It is stored in the file, so that a file stays readable after a change of the
/// defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyCost {
    pub memory_kib: u32,
    pub passes: u32,
    pub lanes: u32,
}

impl KeyCost {
    /// The second recommendation of RFC 9106, for machines with other work to do.
    pub const DEFAULT: Self = Self { memory_kib: 64 * 1024, passes: 3, lanes: 4 };

    /// Returns whether the cost is acceptable. A hostile file must not make its reader work for hours or use all memory.
    fn is_acceptable(self) -> bool {
        self.memory_kib <= 256 * 1024 && (1..=32).contains(&self.passes) && (1..=16).contains(&self.lanes)
    }
}

/// The part of a file that stays the same as long as it has the same key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub cost: KeyCost,
    /// Random bytes, so that the same passphrase gives another key in another file.
    pub salt: [u8; 16],
    /// The second half of the bytes that are derived from the passphrase. It shows whether a passphrase is the right one, and
    /// says nothing about the first half, which is the key.
    pub check: [u8; 32],
}

impl Header {
    /// Returns the bytes as they are in the file.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(60);
        for number in [self.cost.memory_kib, self.cost.passes, self.cost.lanes] {
            out.extend(number.to_le_bytes());
        }
        out.extend(self.salt);
        out.extend(self.check);
        out
    }
}

/// The owner and the name of a secret. The order of its fields is the order of the entries in the file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretId {
    pub tenant: String,
    pub name: String,
}

/// Bytes that the key has encrypted, with the tag of the cipher at their end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    pub nonce: [u8; NONCE],
    pub bytes: Vec<u8>,
}

/// The parts of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedFile {
    pub header: Header,
    /// The encrypted secrets.
    pub entries: BTreeMap<SecretId, Sealed>,
    /// The tag over the first `covered` bytes of the file. It proves that a holder of the key wrote them.
    pub seal: Sealed,
    pub covered: usize,
}

/// Returns the bytes of a file without its seal and checksum.
pub fn write(header: &Header, entries: &BTreeMap<SecretId, Sealed>) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    out.extend(MARK);
    out.extend(VERSION.to_le_bytes());
    // The length is written at the end, when it is known.
    out.extend(0u64.to_le_bytes());
    out.extend(header.bytes());
    out.extend(u32::try_from(entries.len()).map_err(|_| Error::Crypto)?.to_le_bytes());
    for (id, sealed) in entries {
        for text in [&id.tenant, &id.name] {
            out.push(u8::try_from(text.len()).map_err(|_| Error::Crypto)?);
            out.extend(text.as_bytes());
        }
        out.extend(sealed.nonce);
        out.extend(u32::try_from(sealed.bytes.len()).map_err(|_| Error::Crypto)?.to_le_bytes());
        out.extend(&sealed.bytes);
    }
    let file_length = (out.len() + SEAL + CHECKSUM) as u64;
    out[LENGTH_AT..HEADER_AT].copy_from_slice(&file_length.to_le_bytes());
    Ok(out)
}

/// Adds the seal and the checksum to the bytes that `write` returned, which completes the file.
pub fn finish(mut covered: Vec<u8>, seal: &Sealed) -> Vec<u8> {
    covered.extend(seal.nonce);
    covered.extend(&seal.bytes);
    let checksum = Sha256::digest(&covered);
    covered.extend(checksum);
    covered
}

/// Reads a file. The seal is not verified here, since that needs the key.
pub fn read(bytes: &[u8]) -> Result<ParsedFile, Error> {
    let found = bytes.len() as u64;
    let mut reader = Reader { remaining: bytes };
    let mark = &bytes[..bytes.len().min(MARK.len())];
    if mark != &MARK[..mark.len()] {
        return Err(Error::Foreign);
    }
    let cut_off = |_| Error::Truncated { found, expected: (HEADER_AT + 64 + SEAL + CHECKSUM) as u64 };
    reader.take(MARK.len()).map_err(cut_off)?;
    let version = u16::from_le_bytes(reader.array().map_err(cut_off)?);
    let expected = u64::from_le_bytes(reader.array().map_err(cut_off)?);
    // The checksum is compared before the version: a version that a changed bit made is damage, not a newer format.
    let parts = bytes.split_last_chunk::<CHECKSUM>();
    let is_intact = parts.is_some_and(|(content, checksum)| Sha256::digest(content)[..] == checksum[..]);
    if !is_intact && found < expected {
        return Err(Error::Truncated { found, expected });
    }
    if !is_intact || found != expected {
        return Err(Error::Damaged { what: "its checksum does not match" });
    }
    if version != VERSION {
        return Err(Error::UnknownVersion { found: version, known: VERSION });
    }
    let covered = bytes.len().checked_sub(CHECKSUM + SEAL).ok_or(Error::Damaged { what: SHAPE })?;
    read_parts(bytes, covered)
}

const SHAPE: &str = "its parts do not fit together";

/// Reads the parts of a file whose checksum matches. A mistake that is found here was written on purpose, so each length is
/// still checked.
fn read_parts(bytes: &[u8], covered: usize) -> Result<ParsedFile, Error> {
    let mut reader = Reader { remaining: bytes.get(HEADER_AT..covered).ok_or(Error::Damaged { what: SHAPE })? };
    let cost = KeyCost { memory_kib: reader.number()?, passes: reader.number()?, lanes: reader.number()? };
    if !cost.is_acceptable() {
        return Err(Error::Damaged { what: "opening it would take more memory or time than any store needs" });
    }
    let header = Header { cost, salt: reader.array()?, check: reader.array()? };
    let mut entries = BTreeMap::new();
    for _ in 0..reader.number()? {
        let id = SecretId { tenant: reader.text()?, name: reader.text()? };
        let nonce = reader.array()?;
        let length = usize::try_from(reader.number()?).map_err(|_| Error::Damaged { what: SHAPE })?;
        let sealed = Sealed { nonce, bytes: reader.take(length)?.to_vec() };
        if entries.insert(id, sealed).is_some() {
            return Err(Error::Damaged { what: "a name is there twice" });
        }
    }
    if !reader.remaining.is_empty() {
        return Err(Error::Damaged { what: SHAPE });
    }
    let mut reader = Reader { remaining: &bytes[covered..] };
    let seal = Sealed { nonce: reader.array()?, bytes: reader.take(TAG)?.to_vec() };
    Ok(ParsedFile { header, entries, seal, covered })
}

/// Reads values from the front of some bytes. A value that does not fit is an error.
struct Reader<'a> {
    remaining: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let (taken, remaining) = self.remaining.split_at_checked(length).ok_or(Error::Damaged { what: SHAPE })?;
        self.remaining = remaining;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        self.take(N)?.try_into().map_err(|_| Error::Damaged { what: SHAPE })
    }

    fn number(&mut self) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn text(&mut self) -> Result<String, Error> {
        let [length] = self.array()?;
        let bytes = self.take(usize::from(length))?.to_vec();
        String::from_utf8(bytes).map_err(|_| Error::Damaged { what: SHAPE })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Vec<u8> {
        let header = Header { cost: KeyCost::DEFAULT, salt: [7; 16], check: [8; 32] };
        let sealed = Sealed { nonce: [1; NONCE], bytes: vec![2; 20] };
        let id = |name: &str| SecretId { tenant: "local".to_owned(), name: name.to_owned() };
        let entries = BTreeMap::from([(id("A"), sealed.clone()), (id("B"), sealed)]);
        finish(write(&header, &entries).unwrap(), &Sealed { nonce: [3; NONCE], bytes: vec![4; TAG] })
    }

    /// Corrects the checksum, as a person who knows the format would, so that only the part under test is wrong.
    fn with_valid_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
        bytes.truncate(bytes.len() - CHECKSUM);
        let checksum = Sha256::digest(&bytes);
        bytes.extend(checksum);
        bytes
    }

    #[test]
    fn a_file_reads_back_as_it_was_written() {
        let parsed = read(&file()).unwrap();
        assert_eq!(parsed.entries.len(), 2);
        assert_eq!((parsed.header.salt, parsed.seal.bytes), ([7; 16], vec![4; TAG]));
        assert_eq!(parsed.covered, file().len() - SEAL - CHECKSUM);
    }

    #[test]
    fn a_file_cut_at_any_length_is_truncated() {
        let whole = file();
        for length in 0..whole.len() {
            let error = read(&whole[..length]).unwrap_err();
            assert!(matches!(error, Error::Truncated { found, .. } if found == length as u64), "{length}: {error}");
        }
    }

    #[test]
    fn every_changed_bit_is_an_error() {
        let whole = file();
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            match read(&bytes).unwrap_err() {
                Error::Foreign => assert!(bit < MARK.len() * 8),
                // A longer length cannot be told from a cut.
                Error::Truncated { .. } => assert!((LENGTH_AT * 8..HEADER_AT * 8).contains(&bit)),
                Error::Damaged { .. } => {}
                other => panic!("bit {bit}: {other}"),
            }
        }
        let longer = [whole, vec![0]].concat();
        assert!(matches!(read(&longer), Err(Error::Damaged { .. })));
    }

    #[test]
    fn a_newer_format_and_a_foreign_file_have_errors_of_their_own() {
        let mut newer = file();
        newer[MARK.len()] = 2;
        assert!(matches!(read(&with_valid_checksum(newer)), Err(Error::UnknownVersion { found: 2, known: 1 })));
        assert!(matches!(read(b"SQLite format 3\0"), Err(Error::Foreign)));
    }

    #[test]
    fn lengths_and_costs_that_do_not_fit_are_damage_even_with_a_valid_checksum() {
        let spoiled = |at: usize, value: u32| {
            let mut bytes = file();
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            read(&with_valid_checksum(bytes))
        };
        let count = HEADER_AT + 60;
        for (at, value) in [
            (HEADER_AT, u32::MAX),
            (HEADER_AT + 4, 0),
            (HEADER_AT + 4, u32::MAX),
            (HEADER_AT + 8, 0),
            (count, 0),
            (count, 1),
            (count, 3),
            (count, u32::MAX),
            (count + 4, u32::MAX),
            (count + 4 + 1 + 5 + 1 + 1 + NONCE, u32::MAX),
        ] {
            assert!(matches!(spoiled(at, value), Err(Error::Damaged { .. })), "{at} {value}");
        }
    }
}
