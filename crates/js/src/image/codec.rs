//! Encodes and decodes objects: packs the differences between two images, and unpacks and verifies them.
//! Invariant: nothing is unpacked before the listed digests match the key, and no page is handed out before it matches
//! its digest, so every page that is handed out belongs to the requested heap. The object's own page list bounds the
//! memory that is used.

use std::sync::mpsc;
use std::thread;

use base::Digest;
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use super::digest_tree::digest_of;
use super::object::{ChangedPage, Packing, append_checksum, start_object};
use super::page_diff::{PageBytes, append_difference, read_difference, xor};
use super::payload::HeapPayload;
use super::{Damage, Error, Image, PAGE_BYTES, ParsedObject, ZERO_PAGE};

/// The compression level. Equal words are removed before compression, so a higher level finds nothing more.
const LEVEL: i32 = 1;
/// The window of `LEVEL`. A frame that asks for a larger window, and so for more memory, is refused.
const WINDOW_LOG: u32 = 20;

/// An object with this number of changed pages is decoded on two threads.
const PARALLEL_MIN_PAGES: usize = 512;
/// The number of pages that are handed to the other thread together.
const BATCH_PAGES: usize = 16;
/// The largest number of batches that wait for the other thread.
const MAX_QUEUED_BATCHES: usize = 16;

/// A page that may have changed. `old` is a page of zeros if the parent's memory ends before it.
#[derive(Debug, Clone, Copy)]
pub struct PageChange<'a> {
    pub page: u32,
    pub old: &'a [u8],
    pub new: &'a [u8],
}

/// Compressor and decompressor. They are reused, because creating their tables costs more than a small object.
pub struct Codec {
    compressor: zstd::bulk::Compressor<'static>,
    decoder: Decoder<'static>,
    /// The differences that the next object will hold, before compression. A field so that its memory is reused.
    differences: Vec<u8>,
}

impl Codec {
    pub fn new() -> Result<Self, Error> {
        let compressor = zstd::bulk::Compressor::new(LEVEL).map_err(|_| Error::Compress)?;
        let mut decoder = Decoder::new().map_err(|_| Error::Compress)?;
        decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG)).map_err(|_| Error::Compress)?;
        Ok(Self { compressor, decoder, differences: Vec::new() })
    }

    /// Encodes `next` as a difference to `parent`. The changes may have any order and may contain pages that did not
    /// change.
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

    /// Returns the image of an object. `accept` receives the changed pages, verified and in any order: the number of
    /// the first page, and the content of that page and those after it. After an error the caller must discard
    /// everything that it accepted.
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
        // Without a second thread, the small path decodes large objects as well.
        if changed.len() >= PARALLEL_MIN_PAGES && self.decode_on_two_threads(object, &changed, restore, accept)? {
            return Ok(image);
        }
        self.differences(object, changed.len(), |index, difference| {
            let (page, _) = changed[index];
            restore(page, difference);
            verify(object, &changed[index..=index], difference)?;
            accept(page, difference);
            Ok(())
        })?;
        Ok(image)
    }

    /// Unpacks on this thread, and verifies and hands out on another one, because a run waits for the heap. Returns
    /// false if no thread could be started. Hashing takes twice as long as unpacking, so this thread verifies a batch
    /// itself when the queue is full.
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
                    // Buffers are reused, because the first write to new memory costs as much as unpacking into it.
                    let _ = return_buffer.send(batch);
                }
                Ok(())
            });
            let Ok(verifier) = verifier else { return Ok(false) };
            let mut batch = Vec::with_capacity(BATCH_PAGES * PAGE_BYTES);
            let unpacked = self.differences(object, changed.len(), |index, difference| {
                restore(changed[index].0, difference);
                batch.extend_from_slice(difference);
                if batch.len() < BATCH_PAGES * PAGE_BYTES && index + 1 < changed.len() {
                    return Ok(());
                }
                let first_index = index + 1 - batch.len() / PAGE_BYTES;
                match send_batch.try_send((first_index, std::mem::take(&mut batch))) {
                    Ok(()) => {
                        let new_buffer = || Vec::with_capacity(BATCH_PAGES * PAGE_BYTES);
                        batch = free_buffers.try_recv().unwrap_or_else(|_| new_buffer());
                    }
                    Err(mpsc::TrySendError::Full((_, unsent))) => {
                        verify_and_accept(first_index, &unsent)?;
                        batch = unsent;
                    }
                    // The other thread ended because a page was wrong. Its error is returned below.
                    Err(mpsc::TrySendError::Disconnected((_, unsent))) => batch = unsent,
                }
                batch.clear();
                Ok(())
            });
            // The other thread ends when the last sender is gone.
            drop(send_batch);
            verifier.join().unwrap_or(Err(Error::Compress))?;
            unpacked.map(|()| true)
        })
    }

    /// Turns the parent's memory into the heap's memory. After an error the content of `memory` is unusable.
    pub fn apply(&mut self, key: Digest, object: &[u8], parent: &Image, memory: &mut Vec<u8>) -> Result<Image, Error> {
        let object = ParsedObject::parse_as(key, object)?;
        memory.resize(object.memory_bytes as usize, 0);
        let (image, changed) = object.image(parent)?;
        self.differences(&object, changed.len(), |index, difference| {
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

    /// Unpacks the differences one after the other. The packed bytes must hold exactly `count` of them and nothing
    /// else.
    pub(super) fn differences(
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

    /// Replaces the collected differences by these pages, each of which is a difference already.
    pub(super) fn collect_differences<'p>(&mut self, pages: impl Iterator<Item = &'p PageBytes>) {
        self.differences.clear();
        pages.for_each(|difference| append_difference(&mut self.differences, &ZERO_PAGE, difference));
    }

    /// Compresses the collected differences and appends them to an object.
    pub(super) fn append_packed(&mut self, object: &mut Vec<u8>) -> Result<(), Error> {
        if self.differences.is_empty() {
            return Ok(());
        }
        let packed = self.compressor.compress(&self.differences).map_err(|_| Error::Compress)?;
        object.extend_from_slice(&packed);
        Ok(())
    }
}

/// Checks the content of these pages, one after the other, against their digests.
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
    /// Whether the decoder has reported the end of the frame.
    ended: bool,
}

/// The bytes are not one valid frame of the expected length.
struct BadFrame;

impl ZstdFrame<'_, '_> {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), BadFrame> {
        let length = bytes.len();
        let mut output = OutBuffer::around(bytes);
        while output.pos() < length {
            let before = (self.input.pos(), output.pos());
            let remaining = if self.ended { None } else { self.decoder.run(&mut self.input, &mut output).ok() };
            self.ended = remaining.ok_or(BadFrame)? == 0;
            // Without progress the frame is cut off, and the loop would never end.
            if !self.ended && before == (self.input.pos(), output.pos()) {
                return Err(BadFrame);
            }
        }
        Ok(())
    }

    /// Reads the end of the frame. More content, a second frame or any other byte is an error.
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
