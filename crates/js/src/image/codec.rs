//! Objects made and read: the changes from one image to the next, packed.
//! Invariant: nothing is unpacked before the listed digests add up to the key, and no page is given before it has its
//! digest; so what is given belongs to the heap that was asked for. Memory used is bounded by the object's own list.

use std::thread;

use base::Digest;
use zstd::zstd_safe;

use super::frame::{self, Payload};
use super::tree::digest_of;
use super::{Damage, Error, Frame, Image, PAGE};

/// Pages differ in a few bytes and are zero elsewhere once they are XORed: more effort finds nothing more.
const LEVEL: i32 = 1;

pub(super) type Page = [u8; PAGE];
/// Pages and their digests.
type Changed = Vec<(u32, [u8; 32])>;

/// So many pages are worth a second thread.
const MANY: usize = 512;

/// A page that was written. `old` is a page of zeros where the parent's memory ends before it.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    pub page: u32,
    pub old: &'a [u8],
    pub new: &'a [u8],
}

/// What an object says beside its parent.
#[derive(Debug)]
pub struct Decoded {
    pub image: Image,
    changed: Changed,
    /// The changed pages, one after the other.
    bytes: Vec<u8>,
}

impl Decoded {
    /// In rising order.
    pub fn pages(&self) -> impl ExactSizeIterator<Item = (u32, &Page)> {
        self.changed.iter().map(|(page, _)| *page).zip(self.bytes.as_chunks().0)
    }

    /// One of them.
    pub fn page(&self, page: u32) -> Option<&Page> {
        let at = self.changed.binary_search_by_key(&page, |(page, _)| *page).ok()?;
        self.bytes.as_chunks().0.get(at)
    }
}

/// The tables of the compressor, to be kept: making them costs more than a small object does.
pub struct Codec {
    compressor: zstd::bulk::Compressor<'static>,
    decompressor: zstd::bulk::Decompressor<'static>,
    /// XORed pages on their way into an object.
    pages: Vec<u8>,
}

impl Codec {
    pub fn new() -> Result<Self, Error> {
        let compressor = zstd::bulk::Compressor::new(LEVEL).map_err(|_| Error::Compress)?;
        let decompressor = zstd::bulk::Decompressor::new().map_err(|_| Error::Compress)?;
        Ok(Self { compressor, decompressor, pages: Vec::new() })
    }

    /// The object of `next` against `parent`. The changes may come in any order and name pages that are the same after all.
    pub fn encode(&mut self, parent: &Image, next: &Image, changes: &[Change<'_>]) -> Result<Vec<u8>, Error> {
        let key = next.key();
        if key == parent.key() {
            return Err(Error::Same(key));
        }
        let differing = parent.differing(next);
        let mut changed = Vec::with_capacity(differing.len());
        let mut sorted: Vec<&Change<'_>> = changes.iter().collect();
        sorted.sort_by_key(|change| change.page);
        let mut rest = sorted.into_iter();
        self.pages.clear();
        for page in differing {
            let change = rest.find(|change| change.page == page).ok_or(Error::Incomplete(key))?;
            let digest = next.digest(page).ok_or(Error::NoPage(page))?;
            if change.old.len() != PAGE || change.new.len() != PAGE {
                return Err(Error::NoPage(page));
            }
            self.pages.extend(change.old.iter().zip(change.new).map(|(old, new)| old ^ new));
            changed.push((page, digest));
        }
        let parent = (!parent.is_base()).then(|| parent.key());
        let payload = Payload { engine: next.engine(), pages: next.pages(), root: next.root() };
        let mut object = frame::open(&payload, parent, &changed);
        self.pack(&mut object)?;
        frame::close(&mut object);
        Ok(object)
    }

    /// The changed pages of a heap, verified. `read` gives a page of the parent's memory.
    pub fn decode<'p>(
        &mut self,
        frame: &Frame<'_>,
        parent: &Image,
        read: impl Fn(u32) -> &'p [u8] + Sync,
    ) -> Result<Decoded, Error> {
        let (image, changed) = frame.image(parent)?;
        let mut bytes = self.unpacked(frame, changed.len())?;
        let whole = |changed: &[(u32, [u8; 32])], pages: &mut [Page]| {
            for ((page, digest), whole) in changed.iter().zip(pages) {
                if *page < parent.pages() {
                    xor(whole, read(*page));
                }
                frame.hold(digest_of(whole) == *digest, Damage::Page(*page))?;
            }
            Ok(())
        };
        side_by_side(&changed, bytes.as_chunks_mut().0, whole)?;
        Ok(Decoded { image, changed, bytes })
    }

    /// Turns the parent's memory into the heap's. After an error the memory is worth nothing.
    pub fn apply(&mut self, key: Digest, object: &[u8], parent: &Image, memory: &mut Vec<u8>) -> Result<Image, Error> {
        let frame = Frame::read_as(key, object)?;
        memory.resize(frame.memory_bytes as usize, 0);
        let (image, changed) = frame.image(parent)?;
        let unpacked = self.unpacked(&frame, changed.len())?;
        for ((page, digest), difference) in changed.iter().zip(unpacked.chunks_exact(PAGE)) {
            let at = *page as usize * PAGE;
            let whole = memory.get_mut(at..at + PAGE).ok_or(Error::NoPage(*page))?;
            xor(whole, difference);
            frame.hold(digest_of(whole) == *digest, Damage::Page(*page))?;
        }
        Ok(image)
    }

    /// The packed pages, one after the other: exactly so many, from exactly the bytes that are there. At once: page by page, the
    /// decoder keeps a window of its own and copies everything out of it.
    pub(super) fn unpacked(&mut self, frame: &Frame<'_>, count: usize) -> Result<Vec<u8>, Error> {
        let mut pages = Vec::new();
        if count == 0 {
            frame.hold(frame.packed.is_empty(), Damage::Packed)?;
            return Ok(pages);
        }
        // One frame, and nothing after it.
        let length = zstd_safe::find_frame_compressed_size(frame.packed).unwrap_or(0);
        frame.hold(length == frame.packed.len(), Damage::Packed)?;
        pages.try_reserve_exact(count * PAGE).map_err(|_| Error::Compress)?;
        let unpacked = self.decompressor.decompress_to_buffer(frame.packed, &mut pages).is_ok();
        frame.hold(unpacked && pages.len() == count * PAGE, Damage::Packed)?;
        Ok(pages)
    }

    /// Appends the collected pages to an object.
    pub(super) fn pack(&mut self, object: &mut Vec<u8>) -> Result<(), Error> {
        if self.pages.is_empty() {
            return Ok(());
        }
        let packed = self.compressor.compress(&self.pages).map_err(|_| Error::Compress)?;
        object.extend_from_slice(&packed);
        Ok(())
    }

    pub(super) fn collect<'p>(&mut self, pages: impl Iterator<Item = &'p Page>) {
        self.pages.clear();
        pages.for_each(|page| self.pages.extend_from_slice(page));
    }
}

/// Does half of it on a second thread where it is much: a large heap is waited for. Of two mistakes the first one is told.
fn side_by_side<D: Sync, W: Fn(&[D], &mut [Page]) -> Result<(), Error> + Sync>(
    changed: &[D],
    pages: &mut [Page],
    work: W,
) -> Result<(), Error> {
    if changed.len() < MANY {
        return work(changed, pages);
    }
    let half = changed.len() / 2;
    let (first, second) = changed.split_at(half);
    let (here, beside) = pages.split_at_mut(half);
    let (done, done_beside) = thread::scope(|scope| {
        let name = thread::Builder::new().name("heap-digests".to_owned());
        let thread = name.spawn_scoped(scope, || work(second, beside));
        let done = work(first, here);
        (done, thread.map(|thread| thread.join().unwrap_or(Err(Error::Compress))))
    });
    done?;
    // Where no thread can be had, it is done without one.
    done_beside.unwrap_or_else(|_| work(second, &mut pages[half..]))
}

impl Frame<'_> {
    /// The image that this object makes of its parent, and the pages it changes. No page was looked at yet.
    pub(super) fn image(&self, parent: &Image) -> Result<(Image, Changed), Error> {
        if self.engine != parent.engine() {
            return Err(Error::Engine { key: self.key, engine: self.engine });
        }
        let at_hand = (!parent.is_base()).then(|| parent.key());
        if self.parent != at_hand {
            return Err(Error::Parent { key: self.key, parent: self.parent });
        }
        self.hold(self.pages >= parent.pages(), Damage::Shrunk)?;
        let changed = self.changed()?;
        let image = parent.with_digests(changed.iter().copied(), self.pages)?.descended();
        self.hold(image.key() == self.key && image.root() == self.root, Damage::Root)?;
        Ok((image, changed))
    }
}

pub(super) fn xor(page: &mut [u8], difference: &[u8]) {
    page.iter_mut().zip(difference).for_each(|(byte, other)| *byte ^= other);
}
