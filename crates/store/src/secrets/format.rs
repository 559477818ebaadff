//! The binary format of `secrets.enc`. This module parses and writes the bytes; it does not decrypt.
//!
//! Invariants:
//! - The checksum of the whole file is verified before any other part of the file is used.
//! - Each length in the file is compared with the number of bytes that exist before it is used.
//! - Every version of the format begins with the same mark and the version number.
//!
//! ```text
//! mark 8 · version u16 · length of the file u64 · Argon2id memory, passes, lanes u32 each · salt 16 · key check 32
//! count u32 · each: tenant and name (u8 length before each), nonce 24, sealed value (u32 length before it)
//! seal 40 (nonce and tag over everything before it) · SHA-256 32 of everything before it
//! ```
//! Numbers are little-endian. The checksum distinguishes accidental damage from a wrong key. It does not protect
//! against a person who changes the file; the tags of the cipher protect against that.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::error::Error;

pub const FORMAT_VERSION: u16 = 1;
const FILE_MARK: &[u8; 8] = b"TOKAMAK\x1a";
const LENGTH_OFFSET: usize = FILE_MARK.len() + 2;
const HEADER_OFFSET: usize = LENGTH_OFFSET + 8;
pub const NONCE_BYTES: usize = 24;
pub const TAG_BYTES: usize = 16;
const SEAL_BYTES: usize = NONCE_BYTES + TAG_BYTES;
const CHECKSUM_BYTES: usize = 32;

/// The cost of deriving the key from the passphrase with Argon2id. The cost is stored in the file, so that the file
/// stays readable after the default cost changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyCost {
    pub memory_kib: u32,
    pub passes: u32,
    pub lanes: u32,
}

impl KeyCost {
    /// The default cost: the second recommendation of RFC 9106, which is for machines with limited memory.
    pub const DEFAULT: Self = Self { memory_kib: 64 * 1024, passes: 3, lanes: 4 };

    /// Returns whether the cost is acceptable. A hostile file must not make the process compute for hours or use all
    /// memory.
    fn is_acceptable(self) -> bool {
        self.memory_kib <= 256 * 1024 && (1..=32).contains(&self.passes) && (1..=16).contains(&self.lanes)
    }
}

/// The part of a secrets file that depends on the key only. It stays the same while the key stays the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub cost: KeyCost,
    /// Random bytes, so that the same passphrase has different keys in different files.
    pub salt: [u8; 16],
    /// The second half of the bytes that are derived from the passphrase. It shows whether a passphrase is right. It
    /// reveals nothing about the first half, which is the key.
    pub check: [u8; 32],
}

impl Header {
    /// Returns the bytes of the header in the file.
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

/// The tenant and the name of a secret. The entries in the file are sorted by tenant and then by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretId {
    pub tenant: String,
    pub name: String,
}

/// Encrypted bytes with the tag of the cipher at their end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    pub nonce: [u8; NONCE_BYTES],
    pub bytes: Vec<u8>,
}

/// The parts of a secrets file whose checksum matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedFile {
    pub header: Header,
    /// The encrypted secrets.
    pub entries: BTreeMap<SecretId, Sealed>,
    /// The tag over the first `covered` bytes of the file. It proves that the process that wrote these bytes had the
    /// key.
    pub seal: Sealed,
    pub covered: usize,
}

/// Returns the bytes of a file without the seal and the checksum. The caller makes the seal with the key and calls
/// `append_seal`.
pub fn encode_without_seal(header: &Header, entries: &BTreeMap<SecretId, Sealed>) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    out.extend(FILE_MARK);
    out.extend(FORMAT_VERSION.to_le_bytes());
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
    let file_length = (out.len() + SEAL_BYTES + CHECKSUM_BYTES) as u64;
    out[LENGTH_OFFSET..HEADER_OFFSET].copy_from_slice(&file_length.to_le_bytes());
    Ok(out)
}

/// Appends the seal and the checksum to the bytes that `encode_without_seal` returned. The result is the whole file.
pub fn append_seal(mut covered: Vec<u8>, seal: &Sealed) -> Vec<u8> {
    covered.extend(seal.nonce);
    covered.extend(&seal.bytes);
    let checksum = Sha256::digest(&covered);
    covered.extend(checksum);
    covered
}

/// Parses a file and verifies its checksum. The seal is not verified here, because that needs the key.
pub fn parse(bytes: &[u8]) -> Result<ParsedFile, Error> {
    let found = bytes.len() as u64;
    let mut reader = FormatReader { remaining: bytes };
    let mark = &bytes[..bytes.len().min(FILE_MARK.len())];
    if mark != &FILE_MARK[..mark.len()] {
        return Err(Error::Foreign);
    }
    let cut_off = |_| Error::Truncated { found, expected: (HEADER_OFFSET + 64 + SEAL_BYTES + CHECKSUM_BYTES) as u64 };
    reader.take(FILE_MARK.len()).map_err(cut_off)?;
    let version = u16::from_le_bytes(reader.array().map_err(cut_off)?);
    let expected = u64::from_le_bytes(reader.array().map_err(cut_off)?);
    // The checksum is verified before the version is read. Otherwise a damaged version number would look like a newer
    // format.
    let parts = bytes.split_last_chunk::<CHECKSUM_BYTES>();
    let is_intact = parts.is_some_and(|(content, checksum)| Sha256::digest(content)[..] == checksum[..]);
    if !is_intact && found < expected {
        return Err(Error::Truncated { found, expected });
    }
    if !is_intact || found != expected {
        return Err(Error::Damaged { what: "the checksum of the file does not match its content" });
    }
    if version != FORMAT_VERSION {
        return Err(Error::UnknownVersion { found: version, known: FORMAT_VERSION });
    }
    let covered = bytes.len().checked_sub(CHECKSUM_BYTES + SEAL_BYTES).ok_or(Error::Damaged { what: WRONG_LENGTHS })?;
    read_parts(bytes, covered)
}

const WRONG_LENGTHS: &str = "the lengths in the file do not match its size";

/// Parses the parts of a file whose checksum matches. A hostile file can have a valid checksum, so each length is still
/// checked.
fn read_parts(bytes: &[u8], covered: usize) -> Result<ParsedFile, Error> {
    let mut reader =
        FormatReader { remaining: bytes.get(HEADER_OFFSET..covered).ok_or(Error::Damaged { what: WRONG_LENGTHS })? };
    let cost = KeyCost { memory_kib: reader.number()?, passes: reader.number()?, lanes: reader.number()? };
    if !cost.is_acceptable() {
        return Err(Error::Damaged { what: "the file asks for more memory or time to derive its key than is allowed" });
    }
    let header = Header { cost, salt: reader.array()?, check: reader.array()? };
    let mut entries = BTreeMap::new();
    for _ in 0..reader.number()? {
        let id = SecretId { tenant: reader.text()?, name: reader.text()? };
        let nonce = reader.array()?;
        let length = usize::try_from(reader.number()?).map_err(|_| Error::Damaged { what: WRONG_LENGTHS })?;
        let sealed = Sealed { nonce, bytes: reader.take(length)?.to_vec() };
        if entries.insert(id, sealed).is_some() {
            return Err(Error::Damaged { what: "a secret is in the file twice" });
        }
    }
    if !reader.remaining.is_empty() {
        return Err(Error::Damaged { what: WRONG_LENGTHS });
    }
    let mut reader = FormatReader { remaining: &bytes[covered..] };
    let seal = Sealed { nonce: reader.array()?, bytes: reader.take(TAG_BYTES)?.to_vec() };
    Ok(ParsedFile { header, entries, seal, covered })
}

/// Reads values from the beginning of the bytes. A value that is longer than the remaining bytes is an error.
struct FormatReader<'a> {
    remaining: &'a [u8],
}

impl<'a> FormatReader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let (taken, remaining) =
            self.remaining.split_at_checked(length).ok_or(Error::Damaged { what: WRONG_LENGTHS })?;
        self.remaining = remaining;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        self.take(N)?.try_into().map_err(|_| Error::Damaged { what: WRONG_LENGTHS })
    }

    fn number(&mut self) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn text(&mut self) -> Result<String, Error> {
        let [length] = self.array()?;
        let bytes = self.take(usize::from(length))?.to_vec();
        String::from_utf8(bytes).map_err(|_| Error::Damaged { what: WRONG_LENGTHS })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn valid_file() -> Vec<u8> {
        let header = Header { cost: KeyCost::DEFAULT, salt: [7; 16], check: [8; 32] };
        let sealed = Sealed { nonce: [1; NONCE_BYTES], bytes: vec![2; 20] };
        let id = |name: &str| SecretId { tenant: "local".to_owned(), name: name.to_owned() };
        let entries = BTreeMap::from([(id("A"), sealed.clone()), (id("B"), sealed)]);
        append_seal(
            encode_without_seal(&header, &entries).unwrap(),
            &Sealed { nonce: [3; NONCE_BYTES], bytes: vec![4; TAG_BYTES] },
        )
    }

    /// Replaces the checksum by a matching one, so that only the part under test is wrong.
    fn with_valid_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
        bytes.truncate(bytes.len() - CHECKSUM_BYTES);
        let checksum = Sha256::digest(&bytes);
        bytes.extend(checksum);
        bytes
    }

    #[test]
    fn a_file_reads_back_as_it_was_written() {
        let parsed = parse(&valid_file()).unwrap();
        assert_eq!(parsed.entries.len(), 2);
        assert_eq!((parsed.header.salt, parsed.seal.bytes), ([7; 16], vec![4; TAG_BYTES]));
        assert_eq!(parsed.covered, valid_file().len() - SEAL_BYTES - CHECKSUM_BYTES);
    }

    #[test]
    fn a_file_cut_at_any_length_is_truncated() {
        let whole = valid_file();
        for length in 0..whole.len() {
            let error = parse(&whole[..length]).unwrap_err();
            assert!(matches!(error, Error::Truncated { found, .. } if found == length as u64), "{length}: {error}");
        }
    }

    #[test]
    fn every_changed_bit_is_an_error() {
        let whole = valid_file();
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            match parse(&bytes).unwrap_err() {
                Error::Foreign => assert!(bit < FILE_MARK.len() * 8),
                // A length that became larger looks like a file that was cut off.
                Error::Truncated { .. } => assert!((LENGTH_OFFSET * 8..HEADER_OFFSET * 8).contains(&bit)),
                Error::Damaged { .. } => {}
                other => panic!("bit {bit}: {other}"),
            }
        }
        let longer = [whole, vec![0]].concat();
        assert!(matches!(parse(&longer), Err(Error::Damaged { .. })));
    }

    #[test]
    fn a_newer_format_and_a_foreign_file_have_errors_of_their_own() {
        let mut newer = valid_file();
        newer[FILE_MARK.len()] = 2;
        assert!(matches!(parse(&with_valid_checksum(newer)), Err(Error::UnknownVersion { found: 2, known: 1 })));
        assert!(matches!(parse(b"SQLite format 3\0"), Err(Error::Foreign)));
    }

    #[test]
    fn lengths_and_costs_that_do_not_fit_are_damage_even_with_a_valid_checksum() {
        let spoiled = |at: usize, value: u32| {
            let mut bytes = valid_file();
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            parse(&with_valid_checksum(bytes))
        };
        let count = HEADER_OFFSET + 60;
        for (at, value) in [
            (HEADER_OFFSET, u32::MAX),
            (HEADER_OFFSET + 4, 0),
            (HEADER_OFFSET + 4, u32::MAX),
            (HEADER_OFFSET + 8, 0),
            (count, 0),
            (count, 1),
            (count, 3),
            (count, u32::MAX),
            (count + 4, u32::MAX),
            (count + 4 + 1 + 5 + 1 + 1 + NONCE_BYTES, u32::MAX),
        ] {
            assert!(matches!(spoiled(at, value), Err(Error::Damaged { .. })), "{at} {value}");
        }
    }
}
