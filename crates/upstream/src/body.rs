//! The type `BodyDecoder`: collects the body of an answer while it arrives, and decompresses it.
//! Invariant: the limit counts decompressed bytes, and is checked while the decoder writes them. At most one buffer
//! beyond the limit is decompressed, so a small answer that would decompress to gigabytes is refused early.

use std::io::{self, Write};

use flate2::write::MultiGzDecoder;

use crate::failure::{EncodedError, Failure};

/// The part of a body that has arrived so far.
pub(crate) enum BodyDecoder {
    Plain(BoundedBuffer),
    Gzip {
        decoder: Box<MultiGzDecoder<BoundedBuffer>>,
        /// The number of compressed bytes so far. The same limit applies to it, so that an endless stream that
        /// decompresses to no bytes is refused too.
        compressed_bytes: usize,
    },
}

/// A buffer whose `write` fails when its size would exceed the limit.
pub(crate) struct BoundedBuffer {
    bytes: Vec<u8>,
    limit: usize,
    /// Whether a write was refused because of the limit. The decoder reports a refused write in the same way as a
    /// damaged stream, and this field distinguishes the two.
    is_full: bool,
}

impl BodyDecoder {
    /// Returns an empty body. `reserved_bytes` is the initial size of the buffer.
    pub(crate) fn new(is_gzip: bool, limit: usize, reserved_bytes: usize) -> Self {
        let buffer = BoundedBuffer { bytes: Vec::with_capacity(reserved_bytes), limit, is_full: false };
        if is_gzip {
            Self::Gzip { decoder: Box::new(MultiGzDecoder::new(buffer)), compressed_bytes: 0 }
        } else {
            Self::Plain(buffer)
        }
    }

    /// Adds bytes that arrived on the connection, compressed or not.
    pub(crate) fn push(&mut self, chunk: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Plain(buffer) => buffer.write_all(chunk).map_err(|_| Failure::TooLarge),
            Self::Gzip { decoder, compressed_bytes } => {
                *compressed_bytes = compressed_bytes.saturating_add(chunk.len());
                if *compressed_bytes > decoder.get_ref().limit {
                    return Err(Failure::TooLarge);
                }
                decoder.write_all(chunk).map_err(|_| failure_of_decoder(decoder.get_ref()))
            }
        }
    }

    /// Returns the whole body. A compressed stream that is cut off or has a wrong checksum is an error.
    pub(crate) fn finish(self) -> Result<Vec<u8>, Failure> {
        match self {
            Self::Plain(buffer) => Ok(buffer.bytes),
            // An empty body is valid, because a 304 or 204 may have the header `Content-Encoding` without a body.
            Self::Gzip { compressed_bytes: 0, .. } => Ok(Vec::new()),
            Self::Gzip { mut decoder, .. } => {
                decoder.try_finish().map_err(|_| failure_of_decoder(decoder.get_ref()))?;
                Ok(std::mem::take(&mut decoder.get_mut().bytes))
            }
        }
    }
}

fn failure_of_decoder(buffer: &BoundedBuffer) -> Failure {
    if buffer.is_full { Failure::TooLarge } else { Failure::Encoded(EncodedError::Broken) }
}

impl Write for BoundedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.limit - self.bytes.len() {
            self.is_full = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn decompress(file: &[u8], limit: usize, chunk: usize) -> Result<Vec<u8>, Failure> {
        let mut body = BodyDecoder::new(true, limit, 0);
        for part in file.chunks(chunk) {
            body.push(part)?;
        }
        body.finish()
    }

    #[test]
    fn the_limit_counts_decompressed_bytes() {
        let file = gzip(&vec![b'a'; 10_000]);
        for chunk in [1, 7, file.len()] {
            assert_eq!(decompress(&file, 10_000, chunk).unwrap().len(), 10_000);
            assert!(matches!(decompress(&file, 9_999, chunk), Err(Failure::TooLarge)));
        }
        let both = [gzip(b"one "), gzip(b"two")].concat();
        assert_eq!(decompress(&both, 1000, 5).unwrap(), b"one two");
    }

    #[test]
    fn a_gzip_bomb_is_decompressed_up_to_the_limit_only() {
        let file = gzip(&vec![0; 20_000_000]);
        let mut body = BodyDecoder::new(true, 100_000, 0);
        let failure = file.chunks(4096).find_map(|part| body.push(part).err());
        assert!(matches!(failure, Some(Failure::TooLarge)));
        let BodyDecoder::Gzip { decoder, .. } = body else { panic!() };
        assert!(decoder.get_ref().bytes.capacity() <= 2 * 100_000 + 65_536);
    }

    #[test]
    fn broken_streams_and_streams_without_content_have_errors_of_their_own() {
        let file = gzip(b"hello, hello, hello");
        for bad in [&file[..file.len() - 1], &file[..5], b"not gzip at all", &[0x1f]] {
            assert!(matches!(decompress(bad, 1000, 3), Err(Failure::Encoded(EncodedError::Broken))), "{bad:?}");
        }
        let mut wrong = file.clone();
        let checksum_offset = wrong.len() - 6;
        wrong[checksum_offset] ^= 1;
        assert!(matches!(decompress(&wrong, 1000, 100), Err(Failure::Encoded(EncodedError::Broken))), "its checksum");
        let nothing = gzip(b"").repeat(1000);
        assert!(matches!(decompress(&nothing, 1000, 100), Err(Failure::TooLarge)));
        assert_eq!(decompress(b"", 10, 1).unwrap(), b"");
    }
}
