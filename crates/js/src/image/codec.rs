//! Objects made and read: the changes from one image to the next, packed.
//! Invariant: nothing is unpacked before the listed digests add up to the key, and no page is given before it has its
//! digest; so what is given belongs to the heap that was asked for. Memory used is bounded by the object's own list.

use std::sync::mpsc;
use std::thread;

use base::Digest;
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use super::frame::{self, Packing, Payload};
use super::runs;
use super::tree::digest_of;
use super::{Damage, Error, Frame, Image, PAGE, ZERO_PAGE};

/// Pages differ in a few words, and nothing else is packed: more effort finds nothing more.
const LEVEL: i32 = 1;
/// As much as `LEVEL` ever looks back, so that a frame cannot ask for more memory.
const WINDOW_LOG: u32 = 20;

pub(super) type Page = [u8; PAGE];
/// Pages and their digests.
type Changed = Vec<(u32, [u8; 32])>;

/// So many pages are worth a second thread, which gets them by rows and is never more than so many rows behind.
const MANY: usize = 512;
const ROW: usize = 16;
const ROWS: usize = 16;

/// A page that was written. `old` is a page of zeros where the parent's memory ends before it.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    pub page: u32,
    pub old: &'a [u8],
    pub new: &'a [u8],
}

/// The tables of the compressor, to be kept: making them costs more than a small object does.
pub struct Codec {
    compressor: zstd::bulk::Compressor<'static>,
    decoder: Decoder<'static>,
    /// What differs, on its way into an object.
    runs: Vec<u8>,
}

impl Codec {
    pub fn new() -> Result<Self, Error> {
        let compressor = zstd::bulk::Compressor::new(LEVEL).map_err(|_| Error::Compress)?;
        let mut decoder = Decoder::new().map_err(|_| Error::Compress)?;
        decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG)).map_err(|_| Error::Compress)?;
        Ok(Self { compressor, decoder, runs: Vec::new() })
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
        self.runs.clear();
        for page in differing {
            let change = rest.find(|change| change.page == page).ok_or(Error::Incomplete(key))?;
            let digest = next.digest(page).ok_or(Error::NoPage(page))?;
            if change.old.len() != PAGE || change.new.len() != PAGE {
                return Err(Error::NoPage(page));
            }
            runs::add(&mut self.runs, change.old, change.new);
            changed.push((page, digest));
        }
        let parent = (!parent.is_base()).then(|| parent.key());
        let payload = Payload { engine: next.engine(), pages: next.pages(), root: next.root() };
        let mut object = frame::open(&payload, parent, &changed);
        self.pack(&mut object)?;
        frame::close(&mut object);
        Ok(object)
    }

    /// The image of an object. `take` gets its changed pages, verified, in any order: the number of the first, and it with those
    /// that follow it. `read` gives a page of the parent's memory. After an error what was taken is worth nothing.
    pub fn decode<'p>(
        &mut self,
        frame: &Frame<'_>,
        parent: &Image,
        read: impl Fn(u32) -> &'p [u8],
        take: &(dyn Fn(u32, &[u8]) + Sync),
    ) -> Result<Image, Error> {
        let (image, changed) = frame.image(parent)?;
        let whole = |page: u32, difference: &mut Page| {
            if page < parent.pages() {
                xor(difference, read(page));
            }
        };
        // Where no thread can be had, it is done without one.
        if changed.len() >= MANY && self.side_by_side(frame, &changed, whole, take)? {
            return Ok(image);
        }
        self.differences(frame, changed.len(), |at, difference| {
            whole(changed[at].0, difference);
            verified(frame, &changed[at..=at], difference)?;
            take(changed[at].0, difference);
            Ok(())
        })?;
        Ok(image)
    }

    /// Unpacks here, hashes and gives on another thread, which takes twice as long: when that is behind, it is done here as well. A
    /// large heap is waited for.
    fn side_by_side(
        &mut self,
        frame: &Frame<'_>,
        changed: &[(u32, [u8; 32])],
        whole: impl Fn(u32, &mut Page),
        take: &(dyn Fn(u32, &[u8]) + Sync),
    ) -> Result<bool, Error> {
        let (send, receive) = mpsc::sync_channel::<(usize, Vec<u8>)>(ROWS);
        let (give_back, spare) = mpsc::channel();
        let give = |first: usize, row: &[u8]| {
            let changed = changed.get(first..first + row.len() / PAGE).unwrap_or_default();
            verified(frame, changed, row)?;
            let mut rest = row;
            for run in changed.chunk_by(|(one, _), (next, _)| one + 1 == *next) {
                let (pages, after) = rest.split_at(run.len() * PAGE);
                take(run[0].0, pages);
                rest = after;
            }
            Ok(())
        };
        thread::scope(|scope| {
            let hashing = thread::Builder::new().name("heap-digests".to_owned());
            let hashing = hashing.spawn_scoped(scope, move || {
                for (first, row) in receive {
                    give(first, &row)?;
                    // Fresh memory costs as much as unpacking into it does.
                    let _ = give_back.send(row);
                }
                Ok(())
            });
            let Ok(hashing) = hashing else { return Ok(false) };
            let mut row = Vec::with_capacity(ROW * PAGE);
            let unpacked = self.differences(frame, changed.len(), |at, difference| {
                whole(changed[at].0, difference);
                row.extend_from_slice(difference);
                if row.len() < ROW * PAGE && at + 1 < changed.len() {
                    return Ok(());
                }
                let first = at + 1 - row.len() / PAGE;
                match send.try_send((first, std::mem::take(&mut row))) {
                    Ok(()) => row = spare.try_recv().unwrap_or_else(|_| Vec::with_capacity(ROW * PAGE)),
                    Err(mpsc::TrySendError::Full((_, mine))) => {
                        give(first, &mine)?;
                        row = mine;
                    }
                    // Where nobody listens, a page was wrong, which the other one says.
                    Err(mpsc::TrySendError::Disconnected((_, mine))) => row = mine,
                }
                row.clear();
                Ok(())
            });
            drop(send);
            hashing.join().unwrap_or(Err(Error::Compress))?;
            unpacked.map(|()| true)
        })
    }

    /// Turns the parent's memory into the heap's. After an error the memory is worth nothing.
    pub fn apply(&mut self, key: Digest, object: &[u8], parent: &Image, memory: &mut Vec<u8>) -> Result<Image, Error> {
        let frame = Frame::read_as(key, object)?;
        memory.resize(frame.memory_bytes as usize, 0);
        self.unpack(&frame, parent, |page, difference| {
            let at = page as usize * PAGE;
            let whole = memory.get_mut(at..at + PAGE)?;
            xor(whole, difference);
            Some(digest_of(whole))
        })
    }

    /// Hands each changed page's difference to `place`, which says the digest of what came of it.
    fn unpack(
        &mut self,
        frame: &Frame<'_>,
        parent: &Image,
        mut place: impl FnMut(u32, &Page) -> Option<[u8; 32]>,
    ) -> Result<Image, Error> {
        let (image, changed) = frame.image(parent)?;
        self.differences(frame, changed.len(), |at, difference| {
            let (page, digest) = changed[at];
            frame.hold(place(page, difference) == Some(digest), Damage::Page(page))
        })?;
        Ok(image)
    }

    /// The packed pages, one after the other: exactly so many, from exactly the bytes that are there.
    pub(super) fn differences(
        &mut self,
        frame: &Frame<'_>,
        count: usize,
        mut each: impl FnMut(usize, &mut Page) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let packed = || Error::Damaged { key: frame.key, damage: Damage::Packed };
        if count == 0 {
            return frame.hold(frame.packed.is_empty(), Damage::Packed);
        }
        self.decoder.reinit().map_err(|_| Error::Compress)?;
        let mut stream = Stream { decoder: &mut self.decoder, input: InBuffer::around(frame.packed), ended: false };
        let mut page: Page = ZERO_PAGE;
        for at in 0..count {
            let read = match frame.packing {
                Packing::Whole => stream.fill(&mut page).map(Some),
                Packing::Runs => runs::read(&mut page, |bytes| stream.fill(bytes)),
            };
            read.ok().flatten().ok_or_else(packed)?;
            each(at, &mut page)?;
        }
        stream.end().map_err(|Broken| packed())
    }

    /// Appends what was collected to an object.
    pub(super) fn pack(&mut self, object: &mut Vec<u8>) -> Result<(), Error> {
        if self.runs.is_empty() {
            return Ok(());
        }
        let packed = self.compressor.compress(&self.runs).map_err(|_| Error::Compress)?;
        object.extend_from_slice(&packed);
        Ok(())
    }

    pub(super) fn collect<'p>(&mut self, pages: impl Iterator<Item = &'p Page>) {
        self.runs.clear();
        pages.for_each(|difference| runs::add(&mut self.runs, &ZERO_PAGE, difference));
    }
}

/// One zstd frame, read in pieces.
struct Stream<'d, 'i> {
    decoder: &'d mut Decoder<'static>,
    input: InBuffer<'i>,
    ended: bool,
}

struct Broken;

impl Stream<'_, '_> {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Broken> {
        let length = bytes.len();
        let mut output = OutBuffer::around(bytes);
        while output.pos() < length {
            let before = (self.input.pos(), output.pos());
            let left = if self.ended { None } else { self.decoder.run(&mut self.input, &mut output).ok() };
            self.ended = left.ok_or(Broken)? == 0;
            if !self.ended && before == (self.input.pos(), output.pos()) {
                return Err(Broken);
            }
        }
        Ok(())
    }

    /// What is left may only be the end of the frame.
    fn end(mut self) -> Result<(), Broken> {
        let mut more = [0; 1];
        while !self.ended {
            let before = self.input.pos();
            let mut output = OutBuffer::around(more.as_mut_slice());
            self.ended = self.decoder.run(&mut self.input, &mut output).map_err(|_| Broken)? == 0;
            if output.pos() > 0 || (!self.ended && before == self.input.pos()) {
                return Err(Broken);
            }
        }
        if self.input.pos() == self.input.src.len() { Ok(()) } else { Err(Broken) }
    }
}

/// Whether these pages, one after the other, are what their digests say.
fn verified(frame: &Frame<'_>, changed: &[(u32, [u8; 32])], pages: &[u8]) -> Result<(), Error> {
    for ((page, digest), whole) in changed.iter().zip(pages.chunks_exact(PAGE)) {
        frame.hold(digest_of(whole) == *digest, Damage::Page(*page))?;
    }
    frame.hold(pages.len() == changed.len() * PAGE, Damage::Packed)
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
