//! The bytes of `secrets.enc`, read and written without a key.
//! Invariant: bytes that are not whole and unchanged are an error before any of them is believed; no length in the file
//! is used before it is compared with what is there. Every format keeps the mark and its number in front.
//!
//! ```text
//! mark 8 · format u16 · length of the file u64 · Argon2id memory, passes, lanes u32 each · salt 16 · key check 32
//! count u32 · each: tenant and name (u8 length before each), nonce 24, sealed value (u32 length before it)
//! seal 40 (nonce and tag over everything before it) · SHA-256 32 of everything before it
//! ```
//! Numbers are little-endian. The checksum tells damage from a wrong key; against people there are the tags.

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

/// What deriving the key takes. It is kept in the file, so that a store outlives a change of the defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    pub memory_kib: u32,
    pub passes: u32,
    pub lanes: u32,
}

impl Cost {
    /// The second recommendation of RFC 9106, for machines that do other work too.
    pub const DEFAULT: Self = Self { memory_kib: 64 * 1024, passes: 3, lanes: 4 };

    /// A file may not make its reader work for hours or take all memory.
    fn is_bearable(self) -> bool {
        self.memory_kib <= 256 * 1024 && (1..=32).contains(&self.passes) && (1..=16).contains(&self.lanes)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub cost: Cost,
    pub salt: [u8; 16],
    /// The second half of what the passphrase gives: the right key is known by it.
    pub check: [u8; 32],
}

impl Header {
    /// What stays the same as long as the store has its key.
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

/// Tenant, then name.
pub type Place = (String, String);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    pub nonce: [u8; NONCE],
    pub bytes: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    pub header: Header,
    pub entries: BTreeMap<Place, Sealed>,
    /// Over the first `covered` bytes of the file.
    pub seal: Sealed,
    pub covered: usize,
}

/// Everything but the seal and the checksum.
pub fn write(header: &Header, entries: &BTreeMap<Place, Sealed>) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    out.extend(MARK);
    out.extend(VERSION.to_le_bytes());
    out.extend(0u64.to_le_bytes());
    out.extend(header.bytes());
    out.extend(u32::try_from(entries.len()).map_err(|_| Error::Crypto)?.to_le_bytes());
    for ((tenant, name), sealed) in entries {
        for text in [tenant, name] {
            out.push(u8::try_from(text.len()).map_err(|_| Error::Crypto)?);
            out.extend(text.as_bytes());
        }
        out.extend(sealed.nonce);
        out.extend(u32::try_from(sealed.bytes.len()).map_err(|_| Error::Crypto)?.to_le_bytes());
        out.extend(&sealed.bytes);
    }
    let whole = (out.len() + SEAL + CHECKSUM) as u64;
    out[LENGTH_AT..HEADER_AT].copy_from_slice(&whole.to_le_bytes());
    Ok(out)
}

/// The file: what `write` made, its seal, and the checksum.
pub fn finish(mut covered: Vec<u8>, seal: &Sealed) -> Vec<u8> {
    covered.extend(seal.nonce);
    covered.extend(&seal.bytes);
    let checksum = Sha256::digest(&covered);
    covered.extend(checksum);
    covered
}

pub fn read(bytes: &[u8]) -> Result<Parsed, Error> {
    let found = bytes.len() as u64;
    let mut reader = Reader { left: bytes };
    let mark = &bytes[..bytes.len().min(MARK.len())];
    if mark != &MARK[..mark.len()] {
        return Err(Error::Foreign);
    }
    let cut_off = |_| Error::Truncated { found, expected: (HEADER_AT + 64 + SEAL + CHECKSUM) as u64 };
    reader.take(MARK.len()).map_err(cut_off)?;
    let version = u16::from_le_bytes(reader.array().map_err(cut_off)?);
    let expected = u64::from_le_bytes(reader.array().map_err(cut_off)?);
    // The checksum comes before the format's number: a number that nobody wrote is damage, not a newer version.
    let whole = bytes.split_last_chunk::<CHECKSUM>();
    let intact = whole.is_some_and(|(content, checksum)| Sha256::digest(content)[..] == checksum[..]);
    if !intact && found < expected {
        return Err(Error::Truncated { found, expected });
    }
    if !intact || found != expected {
        return Err(Error::Damaged { what: "its checksum does not match" });
    }
    if version != VERSION {
        return Err(Error::UnknownVersion { found: version, known: VERSION });
    }
    let covered = bytes.len().checked_sub(CHECKSUM + SEAL).ok_or(Error::Damaged { what: SHAPE })?;
    body(bytes, covered)
}

const SHAPE: &str = "its parts do not fit together";

/// What is left to go wrong was put there with a matching checksum.
fn body(bytes: &[u8], covered: usize) -> Result<Parsed, Error> {
    let mut reader = Reader { left: bytes.get(HEADER_AT..covered).ok_or(Error::Damaged { what: SHAPE })? };
    let cost = Cost { memory_kib: reader.number()?, passes: reader.number()?, lanes: reader.number()? };
    if !cost.is_bearable() {
        return Err(Error::Damaged { what: "opening it would take more memory or time than any store needs" });
    }
    let header = Header { cost, salt: reader.array()?, check: reader.array()? };
    let mut entries = BTreeMap::new();
    for _ in 0..reader.number()? {
        let place = (reader.text()?, reader.text()?);
        let nonce = reader.array()?;
        let length = usize::try_from(reader.number()?).map_err(|_| Error::Damaged { what: SHAPE })?;
        let sealed = Sealed { nonce, bytes: reader.take(length)?.to_vec() };
        if entries.insert(place, sealed).is_some() {
            return Err(Error::Damaged { what: "a name is there twice" });
        }
    }
    if !reader.left.is_empty() {
        return Err(Error::Damaged { what: SHAPE });
    }
    let mut reader = Reader { left: &bytes[covered..] };
    let seal = Sealed { nonce: reader.array()?, bytes: reader.take(TAG)?.to_vec() };
    Ok(Parsed { header, entries, seal, covered })
}

struct Reader<'a> {
    left: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let (taken, left) = self.left.split_at_checked(length).ok_or(Error::Damaged { what: SHAPE })?;
        self.left = left;
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
        let header = Header { cost: Cost::DEFAULT, salt: [7; 16], check: [8; 32] };
        let sealed = Sealed { nonce: [1; NONCE], bytes: vec![2; 20] };
        let place = |name: &str| ("local".to_owned(), name.to_owned());
        let entries = BTreeMap::from([(place("A"), sealed.clone()), (place("B"), sealed)]);
        finish(write(&header, &entries).unwrap(), &Sealed { nonce: [3; NONCE], bytes: vec![4; TAG] })
    }

    /// A file that someone who knows the format made, so that only the part under test is wrong.
    fn again(mut bytes: Vec<u8>) -> Vec<u8> {
        bytes.truncate(bytes.len() - CHECKSUM);
        let checksum = Sha256::digest(&bytes);
        bytes.extend(checksum);
        bytes
    }

    #[test]
    fn what_is_written_is_read() {
        let parsed = read(&file()).unwrap();
        assert_eq!(parsed.entries.len(), 2);
        assert_eq!((parsed.header.salt, parsed.seal.bytes), ([7; 16], vec![4; TAG]));
        assert_eq!(parsed.covered, file().len() - SEAL - CHECKSUM);
    }

    #[test]
    fn every_cut_is_told_as_one() {
        let whole = file();
        for length in 0..whole.len() {
            let error = read(&whole[..length]).unwrap_err();
            assert!(matches!(error, Error::Truncated { found, .. } if found == length as u64), "{length}: {error}");
        }
    }

    #[test]
    fn every_changed_bit_is_told_as_damage() {
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
    fn a_newer_format_and_another_file_have_names_of_their_own() {
        let mut newer = file();
        newer[MARK.len()] = 2;
        assert!(matches!(read(&again(newer)), Err(Error::UnknownVersion { found: 2, known: 1 })));
        assert!(matches!(read(b"SQLite format 3\0"), Err(Error::Foreign)));
    }

    #[test]
    fn lengths_and_costs_that_someone_wrote_are_not_believed() {
        let spoiled = |at: usize, value: u32| {
            let mut bytes = file();
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            read(&again(bytes))
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
