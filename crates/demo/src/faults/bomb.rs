//! A gzip file that inflates to about a thousand times its size: one JSON string of `a`s, written by hand because no
//! compressor is linked for this alone.
//! Invariant: the file is valid, its checksum and length included; what must refuse it is a limit, not a decoder's error.

/// The longest match that DEFLATE has.
const MATCH: u64 = 258;

/// A gzip file that inflates to `size` bytes (at least 3): `"aaa…a"`.
pub fn gzip(size: u64) -> Vec<u8> {
    let letters = size.saturating_sub(2).max(1);
    let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    let mut bits = Bits { bytes: &mut bytes, word: 0, count: 0 };
    header(&mut bits);
    // Huffman codes, most significant bit first: 285 (a match of 258) is 0, 256 (the end) 10, `"` 110, `a` 111.
    bits.code(0b110, 3);
    let (matches, single) = ((letters - 1) / MATCH, (letters - 1) % MATCH);
    bits.code(0b111, 3);
    for _ in 0..matches {
        // The length code, then the only distance code there is: one byte back.
        bits.code(0, 1);
        bits.code(0, 1);
    }
    for _ in 0..single {
        bits.code(0b111, 3);
    }
    bits.code(0b110, 3);
    bits.code(0b10, 2);
    bits.flush();
    let crc = Crc::TURN.of(b"\"", letters, b"\"");
    bytes.extend(crc.to_le_bytes());
    bytes.extend(((letters + 2) as u32).to_le_bytes());
    bytes
}

/// One last block with its own codes: lengths 3 for `"` and `a`, 2 for the end, 1 for the longest match and its distance.
fn header(bits: &mut Bits<'_>) {
    bits.number(1, 1);
    bits.number(2, 2);
    // 286 literal and length codes, 1 distance code, 18 lengths of the code that the lengths are written in.
    bits.number(286 - 257, 5);
    bits.number(0, 5);
    bits.number(18 - 4, 4);
    // In the order that the format fixes: 16 17 18 0 8 7 9 6 10 5 11 4 12 3 13 2 14 1; 18 takes 1 bit, 1 takes 2, 2 and 3 take 3.
    for length in [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 3, 0, 2] {
        bits.number(length, 3);
    }
    // Codes: 18 is 0, 1 is 10, 2 is 110, 3 is 111.
    zeros(bits, 34);
    bits.code(0b111, 3);
    zeros(bits, 97 - 35);
    bits.code(0b111, 3);
    zeros(bits, 138);
    zeros(bits, 256 - 98 - 138);
    bits.code(0b110, 3);
    zeros(bits, 285 - 257);
    bits.code(0b10, 2);
    bits.code(0b10, 2);
}

/// A run of 11 to 138 symbols that do not occur.
fn zeros(bits: &mut Bits<'_>, count: u32) {
    bits.code(0, 1);
    bits.number(count - 11, 7);
}

struct Bits<'b> {
    bytes: &'b mut Vec<u8>,
    word: u32,
    count: u32,
}

impl Bits<'_> {
    /// Numbers go in from their lowest bit.
    fn number(&mut self, value: u32, width: u32) {
        self.word |= value << self.count;
        self.count += width;
        while self.count >= 8 {
            self.bytes.push(self.word as u8);
            self.word >>= 8;
            self.count -= 8;
        }
    }

    /// Huffman codes go in from their highest bit.
    fn code(&mut self, code: u32, width: u32) {
        self.number(code.reverse_bits() >> (32 - width), width);
    }

    fn flush(&mut self) {
        if self.count > 0 {
            self.bytes.push(self.word as u8);
            self.word = 0;
            self.count = 0;
        }
    }
}

/// What feeding one `a` does to a CRC-32 state, as an affine map over bits: a gigabyte costs thirty squarings.
#[derive(Clone, Copy)]
struct Crc {
    columns: [u32; 32],
    offset: u32,
}

impl Crc {
    const TURN: Crc = Crc::one(b'a');

    const fn one(byte: u8) -> Crc {
        let offset = step(0, byte);
        let mut columns = [0; 32];
        let mut bit = 0;
        while bit < 32 {
            columns[bit] = step(1 << bit, byte) ^ offset;
            bit += 1;
        }
        Crc { columns, offset }
    }

    fn of(self, before: &[u8], times: u64, after: &[u8]) -> u32 {
        let mut state = before.iter().fold(!0, |state, byte| step(state, *byte));
        let (mut map, mut left) = (self, times);
        while left > 0 {
            if left & 1 == 1 {
                state = map.apply(state);
            }
            map = map.twice();
            left >>= 1;
        }
        !after.iter().fold(state, |state, byte| step(state, *byte))
    }

    fn apply(&self, state: u32) -> u32 {
        let set = (0..32).filter(|bit| state >> bit & 1 == 1);
        set.fold(self.offset, |sum, bit| sum ^ self.columns[bit])
    }

    fn twice(&self) -> Crc {
        let columns = self.columns.map(|column| self.apply(column) ^ self.offset);
        Crc { columns, offset: self.apply(self.offset) }
    }
}

const fn step(state: u32, byte: u8) -> u32 {
    let mut state = state ^ byte as u32;
    let mut bit = 0;
    while bit < 8 {
        state = if state & 1 == 1 { state >> 1 ^ 0xEDB8_8320 } else { state >> 1 };
        bit += 1;
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_text() {
        for letters in [1, 2, 3, 255, 1000] {
            let text = format!("\"{}\"", "a".repeat(letters));
            let plain = !text.bytes().fold(!0, step);
            assert_eq!(Crc::TURN.of(b"\"", letters as u64, b"\""), plain);
        }
        assert_eq!(!b"123456789".iter().fold(!0, |state, byte| step(state, *byte)), 0xCBF4_3926);
    }

    #[test]
    fn a_gigabyte_is_a_megabyte() {
        let file = gzip(1 << 30);
        assert!(file.len() < 2 << 20, "{}", file.len());
        assert_eq!(&file[file.len() - 4..], &(1_u32 << 30).to_le_bytes());
    }
}
