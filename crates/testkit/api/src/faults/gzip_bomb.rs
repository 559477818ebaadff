//! Makes a gzip file that inflates to about a thousand times its size, to one JSON string of `a`s.
//! The DEFLATE stream is written directly, because a compressor would have to read a gigabyte for the largest file.
//! Invariant: the file is valid and has the right checksum and length, so that only a size limit of the client refuses the file.

/// The length of the longest match in DEFLATE, in bytes.
const MAX_MATCH_BYTES: u64 = 258;

/// Returns a gzip file that inflates to the `size` bytes (at least 3) of the JSON string `"aaa…a"`.
pub fn gzip_bomb(size: u64) -> Vec<u8> {
    let letters = size.saturating_sub(2).max(1);
    let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    let mut bits = BitWriter { bytes: &mut bytes, word: 0, count: 0 };
    write_block_header(&mut bits);
    // The Huffman codes, with the most significant bit first: 285 (a match of 258) is 0, 256 (the end) is 10, `"` is 110, `a` is 111.
    bits.code(0b110, 3);
    let matches = (letters - 1) / MAX_MATCH_BYTES;
    let single = (letters - 1) % MAX_MATCH_BYTES;
    bits.code(0b111, 3);
    for _ in 0..matches {
        // A match is its length code and then the only distance code, which means one byte back.
        bits.code(0, 1);
        bits.code(0, 1);
    }
    for _ in 0..single {
        bits.code(0b111, 3);
    }
    bits.code(0b110, 3);
    bits.code(0b10, 2);
    bits.flush();
    let crc = CrcStep::LETTER.checksum(b"\"", letters, b"\"");
    bytes.extend(crc.to_le_bytes());
    bytes.extend(((letters + 2) as u32).to_le_bytes());
    bytes
}

/// Writes the header of the only block. Its codes have 3 bits for `"` and `a`, 2 for the end, 1 for the longest match and its distance.
fn write_block_header(bits: &mut BitWriter<'_>) {
    bits.number(1, 1);
    bits.number(2, 2);
    // There are 286 literal and length codes, 1 distance code, and 18 lengths of the code in which the lengths are written.
    bits.number(286 - 257, 5);
    bits.number(0, 5);
    bits.number(18 - 4, 4);
    // RFC 1951, 3.2.7, fixes the order 16 17 18 0 8 7 9 6 10 5 11 4 12 3 13 2 14 1. Here 18 has 1 bit, 1 has 2, and 2 and 3 have 3.
    for length in [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 3, 0, 2] {
        bits.number(length, 3);
    }
    // By these lengths, the code of 18 is 0, the code of 1 is 10, the code of 2 is 110, and the code of 3 is 111.
    write_unused(bits, 34);
    bits.code(0b111, 3);
    write_unused(bits, 97 - 35);
    bits.code(0b111, 3);
    write_unused(bits, 138);
    write_unused(bits, 256 - 98 - 138);
    bits.code(0b110, 3);
    write_unused(bits, 285 - 257);
    bits.code(0b10, 2);
    bits.code(0b10, 2);
}

/// Writes the code lengths of `count` (11 to 138) symbols in a row that do not occur in the block.
fn write_unused(bits: &mut BitWriter<'_>, count: u32) {
    bits.code(0, 1);
    bits.number(count - 11, 7);
}

/// Packs bits into bytes. The first bit is the lowest bit of a byte.
struct BitWriter<'b> {
    bytes: &'b mut Vec<u8>,
    /// The bits that are not written yet, because they do not fill a byte.
    word: u32,
    /// The number of bits in `word`.
    count: u32,
}

impl BitWriter<'_> {
    /// Writes a number, from its lowest bit.
    fn number(&mut self, value: u32, width: u32) {
        self.word |= value << self.count;
        self.count += width;
        while self.count >= 8 {
            self.bytes.push(self.word as u8);
            self.word >>= 8;
            self.count -= 8;
        }
    }

    /// Writes a Huffman code, from its highest bit.
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

/// The change of a CRC-32 state by one or more bytes, as an affine map over bits. The map for a gigabyte of one letter is computed by
/// squaring the map for one letter thirty times.
#[derive(Clone, Copy)]
struct CrcStep {
    /// The change of the result that each bit of the state causes.
    columns: [u32; 32],
    /// The result for the state 0.
    offset: u32,
}

impl CrcStep {
    const LETTER: CrcStep = CrcStep::of_byte(b'a');

    const fn of_byte(byte: u8) -> CrcStep {
        let offset = step(0, byte);
        let mut columns = [0; 32];
        let mut bit = 0;
        while bit < 32 {
            columns[bit] = step(1 << bit, byte) ^ offset;
            bit += 1;
        }
        CrcStep { columns, offset }
    }

    /// Returns the CRC-32 of three parts in a row: `before`, then the bytes of this step `times` times, then `after`.
    fn checksum(self, before: &[u8], times: u64, after: &[u8]) -> u32 {
        let mut state = before.iter().fold(!0, |state, byte| step(state, *byte));
        let mut map = self;
        let mut remaining = times;
        while remaining > 0 {
            if remaining & 1 == 1 {
                state = map.apply(state);
            }
            map = map.squared();
            remaining >>= 1;
        }
        !after.iter().fold(state, |state, byte| step(state, *byte))
    }

    fn apply(&self, state: u32) -> u32 {
        let set = (0..32).filter(|bit| state >> bit & 1 == 1);
        set.fold(self.offset, |sum, bit| sum ^ self.columns[bit])
    }

    fn squared(&self) -> CrcStep {
        let columns = self.columns.map(|column| self.apply(column) ^ self.offset);
        CrcStep { columns, offset: self.apply(self.offset) }
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
    fn the_checksum_is_the_one_of_the_text() {
        for letters in [1, 2, 3, 255, 1000] {
            let text = format!("\"{}\"", "a".repeat(letters));
            let plain = !text.bytes().fold(!0, step);
            assert_eq!(CrcStep::LETTER.checksum(b"\"", letters as u64, b"\""), plain);
        }
        assert_eq!(!b"123456789".iter().fold(!0, |state, byte| step(state, *byte)), 0xCBF4_3926);
    }

    #[test]
    fn a_gigabyte_needs_about_a_megabyte() {
        let file = gzip_bomb(1 << 30);
        assert!(file.len() < 2 << 20, "{}", file.len());
        assert_eq!(&file[file.len() - 4..], &(1_u32 << 30).to_le_bytes());
    }
}
