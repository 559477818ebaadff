//! The bytes of an answer as they come, inflated if they are compressed.
//! Invariant: the limit counts what comes out, while it comes out: at most one buffer more than the limit is ever inflated.

use std::io::{self, Write};

use flate2::write::MultiGzDecoder;

use crate::failure::{EncodedError, Failure};

pub(crate) enum Body {
    Plain(Bounded),
    Gzip {
        inflate: Box<MultiGzDecoder<Bounded>>,
        /// Compressed bytes so far: a stream that inflates to nothing must end as well.
        came: usize,
    },
}

pub(crate) struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
    full: bool,
}

impl Body {
    pub(crate) fn new(gzip: bool, limit: usize, reserve: usize) -> Self {
        let bounded = Bounded { bytes: Vec::with_capacity(reserve), limit, full: false };
        if gzip {
            Self::Gzip { inflate: Box::new(MultiGzDecoder::new(bounded)), came: 0 }
        } else {
            Self::Plain(bounded)
        }
    }

    pub(crate) fn take(&mut self, chunk: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Plain(bounded) => bounded.write_all(chunk).map_err(|_| Failure::TooLarge),
            Self::Gzip { inflate, came } => {
                *came = came.saturating_add(chunk.len());
                if *came > inflate.get_ref().limit {
                    return Err(Failure::TooLarge);
                }
                inflate.write_all(chunk).map_err(|_| problem(inflate.get_ref()))
            }
        }
    }

    pub(crate) fn end(self) -> Result<Vec<u8>, Failure> {
        match self {
            Self::Plain(bounded) => Ok(bounded.bytes),
            // A 304 or 204 names the encoding of a body that it does not have.
            Self::Gzip { came: 0, .. } => Ok(Vec::new()),
            Self::Gzip { mut inflate, .. } => {
                inflate.try_finish().map_err(|_| problem(inflate.get_ref()))?;
                Ok(std::mem::take(&mut inflate.get_mut().bytes))
            }
        }
    }
}

fn problem(bounded: &Bounded) -> Failure {
    if bounded.full { Failure::TooLarge } else { Failure::Encoded(EncodedError::Broken) }
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.limit - self.bytes.len() {
            self.full = true;
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

    fn inflate(file: &[u8], limit: usize, chunk: usize) -> Result<Vec<u8>, Failure> {
        let mut body = Body::new(true, limit, 0);
        for part in file.chunks(chunk) {
            body.take(part)?;
        }
        body.end()
    }

    #[test]
    fn the_limit_counts_what_comes_out() {
        let file = gzip(&vec![b'a'; 10_000]);
        for chunk in [1, 7, file.len()] {
            assert_eq!(inflate(&file, 10_000, chunk).unwrap().len(), 10_000);
            assert!(matches!(inflate(&file, 9_999, chunk), Err(Failure::TooLarge)));
        }
        let both = [gzip(b"one "), gzip(b"two")].concat();
        assert_eq!(inflate(&both, 1000, 5).unwrap(), b"one two");
    }

    #[test]
    fn a_bomb_inflates_to_no_more_than_the_limit() {
        let file = gzip(&vec![0; 20_000_000]);
        let mut body = Body::new(true, 100_000, 0);
        let failed = file.chunks(4096).find_map(|part| body.take(part).err());
        assert!(matches!(failed, Some(Failure::TooLarge)));
        let Body::Gzip { inflate, .. } = body else { panic!() };
        assert!(inflate.get_ref().bytes.capacity() <= 2 * 100_000 + 65_536);
    }

    #[test]
    fn broken_and_endless_streams_are_told_apart_from_large_ones() {
        let file = gzip(b"hello, hello, hello");
        for bad in [&file[..file.len() - 1], &file[..5], b"not gzip at all", &[0x1f]] {
            assert!(matches!(inflate(bad, 1000, 3), Err(Failure::Encoded(EncodedError::Broken))), "{bad:?}");
        }
        let mut wrong = file.clone();
        let at = wrong.len() - 6;
        wrong[at] ^= 1;
        assert!(matches!(inflate(&wrong, 1000, 100), Err(Failure::Encoded(EncodedError::Broken))), "its checksum");
        let nothing = gzip(b"").repeat(1000);
        assert!(matches!(inflate(&nothing, 1000, 100), Err(Failure::TooLarge)));
        assert_eq!(inflate(b"", 10, 1).unwrap(), b"");
    }
}
