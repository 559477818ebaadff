//! The type `Codec`: encodes the difference of two heaps as an object, and decodes and verifies objects.
//! Invariant: pages are unpacked only after the listed digests match the key, and a page is passed to the caller only
//! after its content matches its digest. So every page that a caller receives belongs to the requested heap. The list
//! of changed pages bounds the memory that decoding uses.

use std::sync::mpsc;
use std::thread;

use base::Digest;
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use super::digest_tree::digest_of;
use super::object::{ChangedPage, Packing, append_checksum, start_object};
use super::page_diff::{PageBytes, append_difference, read_difference, xor};
use super::payload::HeapPayload;
use super::{Damage, Error, Image, PAGE_BYTES, ParsedObject, ZERO_PAGE};

/// The compression level of zstd. Equal words are removed before compression, so a higher level would not save bytes.
const COMPRESSION_LEVEL: i32 = 1;
/// The zstd window of `COMPRESSION_LEVEL`, as a power of two. A frame with a larger window is refused, because it would
/// use more memory.
const MAX_WINDOW_LOG: u32 = 20;

/// An object with at least this number of changed pages is decoded on two threads.
const PARALLEL_MIN_PAGES: usize = 512;
/// The number of pages in a batch that one thread unpacks and the other thread verifies.
const PAGES_PER_BATCH: usize = 16;
/// The largest number of batches that wait for the verifying thread.
const MAX_QUEUED_BATCHES: usize = 16;

/// A page that may have changed. `old` is a page of zeros if the parent's memory does not have this page.
#[derive(Debug, Clone, Copy)]
pub struct PageChange<'a> {
    pub page: u32,
    pub old: &'a [u8],
    pub new: &'a [u8],
}

/// A zstd compressor and decompressor for objects. They are reused, because creating their tables takes longer than
/// encoding a small object.
pub struct Codec {
    compressor: zstd::bulk::Compressor<'static>,
    decoder: Decoder<'static>,
    /// A reused buffer with the page differences of the next object, before compression.
    differences: Vec<u8>,
}

impl Codec {
    pub fn new() -> Result<Self, Error> {
        let compressor = zstd::bulk::Compressor::new(COMPRESSION_LEVEL).map_err(|_| Error::Compress)?;
        let mut decoder = Decoder::new().map_err(|_| Error::Compress)?;
        decoder.set_parameter(DParameter::WindowLogMax(MAX_WINDOW_LOG)).map_err(|_| Error::Compress)?;
        Ok(Self { compressor, decoder, differences: Vec::new() })
    }

    /// Encodes the heap `next` as an object, which is a difference to `parent`. `changes` may have any order and may
    /// contain pages that did not change.
    pub fn encode(&mut self, parent: &Image, next: &Image, changes: &[PageChange<'_>]) -> Result<Vec<u8>, Error> {
        let key = next.key();
        if key == parent.key() {
            return Err(Error::Same(key));
        }
        let differing = parent.differing(next);
        let mut changed = Vec::with_capacity(differing.len());
        let mut sorted: Vec<&PageChange<'_>> = changes.iter().collect();
        sorted.sort_by_key(|change| change.page);
        let mut rest = sorted.into_iter();
        self.differences.clear();
        for page in differing {
            let change = rest.find(|change| change.page == page).ok_or(Error::Incomplete(key))?;
            let digest = next.digest(page).ok_or(Error::NoPage(page))?;
            if change.old.len() != PAGE_BYTES || change.new.len() != PAGE_BYTES {
                return Err(Error::NoPage(page));
            }
            append_difference(&mut self.differences, change.old, change.new);
            changed.push((page, digest));
        }
        let parent = (!parent.is_base()).then(|| parent.key());
        let payload = HeapPayload { engine: next.engine(), pages: next.pages(), root: next.root() };
        let mut object = start_object(&payload, parent, &changed);
        self.append_packed(&mut object)?;
        append_checksum(&mut object);
        Ok(object)
    }

    /// Returns the image of an object's heap. `accept` receives the verified changed pages in any order: the number of
    /// a first page, and the content of consecutive pages from there. After an error the caller must discard all pages
    /// that `accept` received.
    pub fn decode<'p>(
        &mut self,
        object: &ParsedObject<'_>,
        parent: &Image,
        parent_page: impl Fn(u32) -> &'p [u8],
        accept: &(dyn Fn(u32, &[u8]) + Sync),
    ) -> Result<Image, Error> {
        let (image, changed) = object.image(parent)?;
        let restore = |page: u32, difference: &mut PageBytes| {
            if page < parent.pages() {
                xor(difference, parent_page(page));
            }
        };
        // If no second thread can be started, a large object is decoded on this thread like a small one.
        if changed.len() >= PARALLEL_MIN_PAGES && self.decode_on_two_threads(object, &changed, restore, accept)? {
            return Ok(image);
        }
        self.unpack_differences(object, changed.len(), |index, difference| {
            let (page, _) = changed[index];
            restore(page, difference);
            verify(object, &changed[index..=index], difference)?;
            accept(page, difference);
            Ok(())
        })?;
        Ok(image)
    }

    /// Unpacks on this thread, and verifies and accepts on another thread, because a run waits for the heap. Returns
    /// false if the other thread could not be started. Verifying takes twice as long as unpacking, so this thread
    /// verifies a batch itself when the queue is full.
    fn decode_on_two_threads(
        &mut self,
        object: &ParsedObject<'_>,
        changed: &[ChangedPage],
        restore: impl Fn(u32, &mut PageBytes),
        accept: &(dyn Fn(u32, &[u8]) + Sync),
    ) -> Result<bool, Error> {
        let (send_batch, batches) = mpsc::sync_channel::<(usize, Vec<u8>)>(MAX_QUEUED_BATCHES);
        let (return_buffer, free_buffers) = mpsc::channel();
        let verify_and_accept = |first_index: usize, batch: &[u8]| {
            let changed = changed.get(first_index..first_index + batch.len() / PAGE_BYTES).unwrap_or_default();
            verify(object, changed, batch)?;
            let mut rest = batch;
            for consecutive in changed.chunk_by(|(page, _), (next, _)| page + 1 == *next) {
                let (pages, after) = rest.split_at(consecutive.len() * PAGE_BYTES);
                accept(consecutive[0].0, pages);
                rest = after;
            }
            Ok(())
        };
        thread::scope(|scope| {
            let verifier = thread::Builder::new().name("heap-digests".to_owned());
            let verifier = verifier.spawn_scoped(scope, move || {
                for (first_index, batch) in batches {
                    verify_and_accept(first_index, &batch)?;
                    // Buffers are reused, because the first write to new memory takes as long as unpacking.
                    let _ = return_buffer.send(batch);
                }
                Ok(())
            });
            let Ok(verifier) = verifier else { return Ok(false) };
            let mut batch = Vec::with_capacity(PAGES_PER_BATCH * PAGE_BYTES);
            let unpacked = self.unpack_differences(object, changed.len(), |index, difference| {
                restore(changed[index].0, difference);
                batch.extend_from_slice(difference);
                if batch.len() < PAGES_PER_BATCH * PAGE_BYTES && index + 1 < changed.len() {
                    return Ok(());
                }
                let first_index = index + 1 - batch.len() / PAGE_BYTES;
                match send_batch.try_send((first_index, std::mem::take(&mut batch))) {
                    Ok(()) => {
                        let new_buffer = || Vec::with_capacity(PAGES_PER_BATCH * PAGE_BYTES);
                        batch = free_buffers.try_recv().unwrap_or_else(|_| new_buffer());
                    }
                    Err(mpsc::TrySendError::Full((_, unsent))) => {
                        verify_and_accept(first_index, &unsent)?;
                        batch = unsent;
                    }
                    // The other thread ended because a page did not match its digest. The join below returns its error.
                    Err(mpsc::TrySendError::Disconnected((_, unsent))) => batch = unsent,
                }
                batch.clear();
                Ok(())
            });
            // The other thread ends when the last sender is dropped.
            drop(send_batch);
            verifier.join().unwrap_or(Err(Error::Compress))?;
            unpacked.map(|()| true)
        })
    }

    /// Changes `memory` from the parent's memory to the memory of the heap `key`. After an error the content of
    /// `memory` is unusable.
    pub fn apply(&mut self, key: Digest, object: &[u8], parent: &Image, memory: &mut Vec<u8>) -> Result<Image, Error> {
        let object = ParsedObject::parse_as(key, object)?;
        memory.resize(object.memory_bytes as usize, 0);
        let (image, changed) = object.image(parent)?;
        self.unpack_differences(&object, changed.len(), |index, difference| {
            let (page, digest) = changed[index];
            let at = page as usize * PAGE_BYTES;
            let matches = memory.get_mut(at..at + PAGE_BYTES).is_some_and(|content| {
                xor(content, difference);
                digest_of(content) == digest
            });
            object.ensure(matches, Damage::Page(page))
        })?;
        Ok(image)
    }

    /// Unpacks the page differences of an object and passes each with its index to `each`. The packed bytes must
    /// contain exactly `count` differences.
    pub(super) fn unpack_differences(
        &mut self,
        object: &ParsedObject<'_>,
        count: usize,
        mut each: impl FnMut(usize, &mut PageBytes) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if count == 0 {
            return object.ensure(object.packed.is_empty(), Damage::Packed);
        }
        let bad_packing = || Error::Damaged { key: object.key, damage: Damage::Packed };
        self.decoder.reinit().map_err(|_| Error::Compress)?;
        let mut stream = ZstdFrame { decoder: &mut self.decoder, input: InBuffer::around(object.packed), ended: false };
        let mut page: PageBytes = ZERO_PAGE;
        for index in 0..count {
            let read = match object.packing {
                Packing::Whole => stream.fill(&mut page).map(Some),
                Packing::Runs => read_difference(&mut page, |bytes| stream.fill(bytes)),
            };
            read.ok().flatten().ok_or_else(bad_packing)?;
            each(index, &mut page)?;
        }
        stream.expect_end().map_err(|BadFrame| bad_packing())
    }

    /// Replaces the content of the difference buffer. Each of `pages` is the XOR of an old and a new page.
    pub(super) fn collect_differences<'p>(&mut self, pages: impl Iterator<Item = &'p PageBytes>) {
        self.differences.clear();
        pages.for_each(|difference| append_difference(&mut self.differences, &ZERO_PAGE, difference));
    }

    /// Compresses the difference buffer and appends the result to an object.
    pub(super) fn append_packed(&mut self, object: &mut Vec<u8>) -> Result<(), Error> {
        if self.differences.is_empty() {
            return Ok(());
        }
        let packed = self.compressor.compress(&self.differences).map_err(|_| Error::Compress)?;
        object.extend_from_slice(&packed);
        Ok(())
    }
}

/// Checks that the content of each changed page matches its digest. `pages` contains the pages one after the other.
fn verify(object: &ParsedObject<'_>, changed: &[ChangedPage], pages: &[u8]) -> Result<(), Error> {
    for ((page, digest), content) in changed.iter().zip(pages.chunks_exact(PAGE_BYTES)) {
        object.ensure(digest_of(content) == *digest, Damage::Page(*page))?;
    }
    object.ensure(pages.len() == changed.len() * PAGE_BYTES, Damage::Packed)
}

/// One zstd frame that is decompressed in pieces.
struct ZstdFrame<'d, 'i> {
    decoder: &'d mut Decoder<'static>,
    input: InBuffer<'i>,
    /// Whether the decoder has reached the end of the frame.
    ended: bool,
}

/// The error of [`ZstdFrame`]: the packed bytes are not one valid zstd frame of the expected length.
struct BadFrame;

impl ZstdFrame<'_, '_> {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), BadFrame> {
        let length = bytes.len();
        let mut output = OutBuffer::around(bytes);
        while output.pos() < length {
            let before = (self.input.pos(), output.pos());
            let remaining = if self.ended { None } else { self.decoder.run(&mut self.input, &mut output).ok() };
            self.ended = remaining.ok_or(BadFrame)? == 0;
            // If the decoder made no progress, the frame is cut off. Without this check the loop would never end.
            if !self.ended && before == (self.input.pos(), output.pos()) {
                return Err(BadFrame);
            }
        }
        Ok(())
    }

    /// Checks that the frame ends here. Further content, a second frame or any other byte is an error.
    fn expect_end(mut self) -> Result<(), BadFrame> {
        let mut excess = [0; 1];
        while !self.ended {
            let before = self.input.pos();
            let mut output = OutBuffer::around(excess.as_mut_slice());
            self.ended = self.decoder.run(&mut self.input, &mut output).map_err(|_| BadFrame)? == 0;
            if output.pos() > 0 || (!self.ended && before == self.input.pos()) {
                return Err(BadFrame);
            }
        }
        if self.input.pos() == self.input.src.len() { Ok(()) } else { Err(BadFrame) }
    }
}
