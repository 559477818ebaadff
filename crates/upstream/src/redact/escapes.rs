//! Decodes the escapes of a text, and remembers where each decoded byte was in the text before.
//! Invariant: a decoder changes only what it recognises. A broken escape stays as it is.

use memchr::{memchr, memchr2};

/// A text that was decoded from the raw bytes of an answer, perhaps in several layers.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub text: &'a [u8],
    /// The escapes of each layer, the first decoded one first.
    pub layers: &'a [&'a Escapes],
}

impl View<'_> {
    /// Returns the range of the raw bytes from which a range of this view was decoded.
    pub fn raw_range(self, start: usize, end: usize) -> std::ops::Range<usize> {
        let last = end.max(start + 1) - 1;
        let range =
            self.layers.iter().rev().fold((start, last + 1), |(start, end), escapes| {
                (escapes.source_start(start), escapes.source_end(end))
            });
        range.0..range.1
    }
}

/// The places where a decoded text differs from its source.
#[derive(Debug, Default)]
pub struct Escapes(Vec<Escape>);

/// One decoded escape.
#[derive(Debug, Clone, Copy)]
struct Escape {
    /// The offset of the escape in the source.
    source: usize,
    /// The offset of the decoded bytes in the decoded text.
    decoded: usize,
    source_length: u8,
    decoded_length: u8,
}

impl Escapes {
    /// Returns the offset in the source of the character that contains the decoded byte at `offset`.
    fn source_start(&self, offset: usize) -> usize {
        match self.last_before(offset) {
            None => offset,
            Some(escape) if offset < escape.decoded + usize::from(escape.decoded_length) => escape.source,
            Some(escape) => escape.source_of_later(offset),
        }
    }

    /// Returns the offset in the source of the end of the character before the decoded offset `end`.
    fn source_end(&self, end: usize) -> usize {
        let last = end.saturating_sub(1);
        match self.last_before(last) {
            None => end,
            Some(escape) if last < escape.decoded + usize::from(escape.decoded_length) => {
                escape.source + usize::from(escape.source_length)
            }
            Some(escape) => escape.source_of_later(last) + 1,
        }
    }

    /// Returns the last escape whose decoded bytes begin at or before `offset`.
    fn last_before(&self, offset: usize) -> Option<&Escape> {
        let count = self.0.partition_point(|escape| escape.decoded <= offset);
        count.checked_sub(1).and_then(|index| self.0.get(index))
    }
}

impl Escape {
    /// Returns the source offset of a decoded byte after this escape and before the next one.
    fn source_of_later(&self, offset: usize) -> usize {
        let after = offset - self.decoded - usize::from(self.decoded_length);
        self.source + usize::from(self.source_length) + after
    }
}

/// The character of an escape, and the length of the escape in the source.
struct Decoded {
    bytes: [u8; 4],
    length: u8,
    source_length: usize,
}

impl Decoded {
    fn byte(byte: u8, source_length: usize) -> Self {
        Self { bytes: [byte, 0, 0, 0], length: 1, source_length }
    }

    fn character(c: char, source_length: usize) -> Self {
        let mut bytes = [0; 4];
        let length = c.encode_utf8(&mut bytes).len();
        Self { bytes, length: u8::try_from(length).unwrap_or(4), source_length }
    }

    fn removed(source_length: usize) -> Self {
        Self { bytes: [0; 4], length: 0, source_length }
    }
}

/// Decodes every escape of a text. `next` finds the next byte that may begin an escape, and `decode` decodes the escape
/// at an offset of the text. Returns `None` if the text has no escape.
fn decode_all(
    text: &[u8],
    next: impl Fn(&[u8]) -> Option<usize>,
    decode: impl Fn(&[u8], usize) -> Option<Decoded>,
) -> Option<(Vec<u8>, Escapes)> {
    let (mut decoded, mut escapes) = (Vec::new(), Vec::new());
    let (mut at, mut copied_to) = (0, 0);
    while let Some(offset) = text.get(at..).and_then(&next) {
        let start = at + offset;
        let Some(escape) = decode(text, start) else {
            at = start + 1;
            continue;
        };
        if escapes.is_empty() {
            decoded.reserve_exact(text.len());
        }
        decoded.extend_from_slice(&text[copied_to..start]);
        escapes.push(Escape {
            source: start,
            decoded: decoded.len(),
            source_length: u8::try_from(escape.source_length).unwrap_or(u8::MAX),
            decoded_length: escape.length,
        });
        decoded.extend_from_slice(&escape.bytes[..usize::from(escape.length)]);
        at = start + escape.source_length;
        copied_to = at;
    }
    if escapes.is_empty() {
        return None;
    }
    decoded.extend_from_slice(&text[copied_to..]);
    Some((decoded, Escapes(escapes)))
}

/// Decodes the escapes of JSON strings, and `\xHH`, `\u{…}` and `\UHHHHHHHH`, which other languages write.
pub fn json(text: &[u8]) -> Option<(Vec<u8>, Escapes)> {
    decode_all(text, |rest| memchr(b'\\', rest), json_escape)
}

fn json_escape(text: &[u8], start: usize) -> Option<Decoded> {
    let rest = text.get(start + 1..)?;
    let plain = |byte| Some(Decoded::byte(byte, 2));
    match rest.first()? {
        b'u' if rest.get(1) == Some(&b'{') => {
            let digits = rest.get(2..)?;
            let end = digits.iter().take(9).position(|byte| *byte == b'}')?;
            Some(Decoded::character(char::from_u32(hex_number(digits, end)?)?, end + 4))
        }
        b'u' => {
            let unit = hex_number(rest.get(1..)?, 4)?;
            let low = || rest.get(5..7).filter(|text| *text == b"\\u").and_then(|_| hex_number(rest.get(7..)?, 4));
            match (unit, low()) {
                (0xd800..=0xdbff, Some(low @ 0xdc00..=0xdfff)) => {
                    let code = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                    Some(Decoded::character(char::from_u32(code)?, 12))
                }
                _ => Some(Decoded::character(char::from_u32(unit)?, 6)),
            }
        }
        b'U' => Some(Decoded::character(char::from_u32(hex_number(rest.get(1..)?, 8)?)?, 10)),
        b'x' => Some(Decoded::byte(u8::try_from(hex_number(rest.get(1..)?, 2)?).ok()?, 4)),
        b'n' => plain(b'\n'),
        b'r' => plain(b'\r'),
        b't' => plain(b'\t'),
        b'b' => plain(8),
        b'f' => plain(12),
        byte @ (b'"' | b'\\' | b'/' | b'\'') => plain(*byte),
        _ => None,
    }
}

/// Decodes percent-encoded bytes.
pub fn percent(text: &[u8]) -> Option<(Vec<u8>, Escapes)> {
    decode_all(
        text,
        |rest| memchr(b'%', rest),
        |text, start| {
            let byte = hex_number(text.get(start + 1..)?, 2)?;
            Some(Decoded::byte(u8::try_from(byte).ok()?, 3))
        },
    )
}

/// The longest HTML entity that is decoded, in bytes. Leading zeros may make an entity as long as one likes.
const MAX_ENTITY_BYTES: usize = 64;

/// Decodes HTML entities: `&#65;`, `&#x41;`, and the names of all ASCII characters that have one.
pub fn html(text: &[u8]) -> Option<(Vec<u8>, Escapes)> {
    decode_all(text, |rest| memchr(b'&', rest), html_entity)
}

fn html_entity(text: &[u8], start: usize) -> Option<Decoded> {
    let rest = text.get(start + 1..)?;
    let rest = rest.get(..MAX_ENTITY_BYTES).unwrap_or(rest);
    let (c, length) = match rest {
        [b'#', b'x' | b'X', digits @ ..] => numeric_entity(digits, 16, 2)?,
        [b'#', digits @ ..] => numeric_entity(digits, 10, 1)?,
        _ => {
            let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
            let name = rest.get(..length)?;
            (ENTITIES.iter().find(|(known, _)| known.as_bytes() == name)?.1, length)
        }
    };
    // Browsers accept an entity without its semicolon too.
    let semicolon = usize::from(rest.get(length) == Some(&b';'));
    Some(Decoded::character(c, 1 + length + semicolon))
}

/// Returns the character of a number, and the length of the entity without `&` and `;`.
fn numeric_entity(digits: &[u8], radix: u32, prefix: usize) -> Option<(char, usize)> {
    let length = digits.iter().take_while(|byte| char::from(**byte).is_digit(radix)).count();
    let number =
        digits.get(..length).filter(|digits| !digits.is_empty())?.iter().try_fold(0_u32, |number, byte| {
            number.checked_mul(radix)?.checked_add(char::from(*byte).to_digit(radix)?)
        })?;
    Some((char::from_u32(number)?, prefix + length))
}

/// The names of ASCII characters in HTML.
const ENTITIES: [(&str, char); 44] = [
    ("amp", '&'),
    ("AMP", '&'),
    ("lt", '<'),
    ("LT", '<'),
    ("gt", '>'),
    ("GT", '>'),
    ("quot", '"'),
    ("QUOT", '"'),
    ("apos", '\''),
    ("Tab", '\t'),
    ("NewLine", '\n'),
    ("excl", '!'),
    ("num", '#'),
    ("dollar", '$'),
    ("percnt", '%'),
    ("lpar", '('),
    ("rpar", ')'),
    ("ast", '*'),
    ("midast", '*'),
    ("plus", '+'),
    ("comma", ','),
    ("period", '.'),
    ("sol", '/'),
    ("colon", ':'),
    ("semi", ';'),
    ("equals", '='),
    ("quest", '?'),
    ("commat", '@'),
    ("lsqb", '['),
    ("lbrack", '['),
    ("bsol", '\\'),
    ("rsqb", ']'),
    ("rbrack", ']'),
    ("Hat", '^'),
    ("lowbar", '_'),
    ("UnderBar", '_'),
    ("grave", '`'),
    ("DiacriticalGrave", '`'),
    ("lcub", '{'),
    ("lbrace", '{'),
    ("verbar", '|'),
    ("vert", '|'),
    ("rcub", '}'),
    ("rbrace", '}'),
];

/// Removes line breaks, with the indentation after them, between characters of base64 or hexadecimal text.
pub fn line_breaks(text: &[u8]) -> Option<(Vec<u8>, Escapes)> {
    decode_all(
        text,
        |rest| memchr2(b'\n', b'\r', rest),
        |text, start| {
            let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_');
            text.get(start.checked_sub(1)?).filter(|byte| is_digit(byte))?;
            let rest = text.get(start..)?;
            // A longer indentation is not that of encoded text, and its length would not fit into an `Escape`.
            let length = rest.iter().take(200).take_while(|byte| matches!(byte, b'\n' | b'\r' | b' ' | b'\t')).count();
            rest.get(length).filter(|byte| is_digit(byte))?;
            Some(Decoded::removed(length))
        },
    )
}

/// Reads exactly `count` hexadecimal digits at the beginning of a text.
fn hex_number(text: &[u8], count: usize) -> Option<u32> {
    let digits = text.get(..count).filter(|digits| !digits.is_empty() && count <= 8)?;
    digits.iter().try_fold(0_u32, |number, byte| Some(number << 4 | char::from(*byte).to_digit(16)?))
}
