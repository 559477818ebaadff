//! One heap: its digests, the ground it stands on, and the pages it has over that ground.
//! Invariant: reading a page gives what the image's digest of it says; a page that is not there is zero.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::Digest;

use crate::image::{Image, PAGE, ZERO_PAGE};
use crate::machine::Ground;

use super::page::{Entry, Ledger, Page};

/// No object needs more than this many others to be read.
pub const LINKS_MOST: u32 = 32;
/// A program that writes more than this says little about the next one.
const LIKELY_MOST: usize = 96;
/// So often it is heard what steps of one sort have written.
const LIKELY_TOLD: u32 = 2;
/// As many objects of one weight in a row become one of the next weight.
const ROW: u32 = 3;

pub struct Held {
    pub image: Image,
    ground: Arc<Grounded>,
    /// In rising order.
    over: Vec<(u32, Arc<Page>)>,
    /// What its object was made against; `None` only for the base image.
    parent: Option<Arc<Held>>,
    /// How many objects a reader needs; none for the base image.
    pub links: u32,
    /// About how many steps its object stands for.
    weight: u32,
    /// Of its digests; its pages are counted for themselves.
    _counted: Entry,
}

struct Grounded {
    ground: Ground,
    likely: Mutex<Likely>,
    _counted: Entry,
}

/// The pages that a guest on a ground is likely to write, in rising order: what the first ones there had written, and before
/// there was one, those on the ground before.
struct Likely {
    pages: Arc<[u32]>,
    /// How often that was told, of steps that begin a program and of those that go on with one.
    told: [u32; 2],
    tried: bool,
}

impl Held {
    /// The image an engine boots with.
    pub fn base(ledger: &Arc<Ledger>, image: Image, memory: &[u8]) -> io::Result<Self> {
        let pages = (0..).zip(memory.chunks_exact(PAGE)).filter(|(_, page)| *page != ZERO_PAGE);
        let ground = Arc::new(Grounded::make(ledger, memory.len(), pages, Arc::default())?);
        // There is one, for as long as its engine is there.
        let _counted = ledger.take(0);
        Ok(Self { image, ground, over: Vec::new(), parent: None, links: 0, weight: 0, _counted })
    }

    /// What comes of this heap when these pages change, in rising order. Its object is not made yet.
    pub fn next(&self, ledger: &Arc<Ledger>, image: Image, changed: &[(u32, Arc<Page>)]) -> Self {
        let mut over = Vec::with_capacity(self.over.len() + changed.len());
        let mut old = self.over.iter().peekable();
        for (at, page) in changed {
            while let Some(entry) = old.next_if(|(other, _)| other < at) {
                over.push(entry.clone());
            }
            old.next_if(|(other, _)| other == at);
            over.push((*at, page.clone()));
        }
        over.extend(old.cloned());
        let _counted = ledger.take(image.own_bytes(&self.image) + over.len() * size_of::<(u32, Arc<Page>)>());
        Self { image, ground: self.ground.clone(), over, parent: None, links: 0, weight: 0, _counted }
    }

    /// The same on a ground that holds all of it, of which so many bytes were written.
    pub(super) fn grounded(&self, ledger: &Arc<Ledger>, image: Image, ground: Ground, written: usize) -> Self {
        let _counted = ledger.take(image.own_bytes(&self.image));
        let ground = Arc::new(Grounded::new(ground, self.likely(), ledger.take(written)));
        Self { image, ground, over: Vec::new(), parent: None, links: 0, weight: 0, _counted }
    }

    /// Gives it a ground of its own when it has too much over the one it came from.
    pub fn settle(&mut self, ledger: &Arc<Ledger>) -> io::Result<()> {
        if self.over.len() <= over_most(self.image.pages()) {
            return Ok(());
        }
        let pages = (0..self.image.pages()).map(|at| (at, self.page(at))).filter(|(_, page)| *page != ZERO_PAGE);
        let ground = Grounded::make(ledger, self.image.memory_bytes() as usize, pages, self.likely())?;
        self.ground = Arc::new(ground);
        self.over = Vec::new();
        Ok(())
    }

    pub fn key(&self) -> Digest {
        self.image.key()
    }

    pub fn ground(&self) -> &Ground {
        &self.ground.ground
    }

    /// Whether both are pages over the same ground.
    pub fn stands_beside(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.ground, &other.ground)
    }

    pub fn over(&self) -> &[(u32, Arc<Page>)] {
        &self.over
    }

    pub fn is_over(&self, at: u32) -> bool {
        self.over.binary_search_by_key(&at, |(page, _)| *page).is_ok()
    }

    /// The pages that a guest here is likely to write, in rising order.
    pub fn likely(&self) -> Arc<[u32]> {
        self.ground.likely().pages.clone()
    }

    /// Whether it was tried what a guest here writes.
    pub fn is_tried(&self) -> bool {
        self.ground.likely().tried
    }

    /// Tells what a guest here wrote when that was tried; those that do real work know better.
    pub fn was_tried(&self, pages: &[u32]) {
        let mut likely = self.ground.likely();
        likely.tried = true;
        if likely.told == [0; 2] && pages.len() <= LIKELY_MOST {
            likely.pages = pages.into();
        }
    }

    /// Tells what a guest here wrote. A step that goes on with a program writes other pages than one that begins one: the first
    /// few of both count, and no more, so that it does not grow.
    pub fn was_written(&self, goes_on: bool, pages: &[u32]) {
        let mut likely = self.ground.likely();
        let (sort, first) = (usize::from(goes_on), likely.told == [0; 2]);
        if likely.told[sort] == LIKELY_TOLD || pages.len() > LIKELY_MOST {
            return;
        }
        likely.told[sort] += 1;
        likely.pages = if first { pages.into() } else { union(&likely.pages, pages) };
    }

    pub fn page(&self, at: u32) -> &[u8] {
        match self.over.binary_search_by_key(&at, |(page, _)| *page) {
            Ok(found) => self.over[found].1.bytes(),
            Err(_) => self.ground.ground.page(at).unwrap_or(&ZERO_PAGE),
        }
    }

    /// Names what its object is made against.
    pub fn descend(&mut self, parent: &Arc<Held>, weight: u32) {
        self.links = parent.links + 1;
        self.parent = Some(parent.clone());
        self.weight = weight;
    }

    /// What its object was made against.
    pub fn parent(&self) -> Option<&Arc<Held>> {
        self.parent.as_ref()
    }

    /// The key of what its object was made against, unless that is the base image.
    pub fn parent_key(&self) -> Option<Digest> {
        self.parent.as_ref().filter(|parent| !parent.image.is_base()).map(|parent| parent.key())
    }
}

/// What the object of the heap after `last` is best made against, and its weight: objects of equal weight are gathered by
/// threes and fours, as in counting, so that ten thousand steps are about twenty links and no step pays for all of them.
pub fn gather(last: &Arc<Held>) -> (Arc<Held>, u32) {
    let mut onto = last.clone();
    let mut weight = 1;
    loop {
        let mut before = onto.clone();
        let mut row = 0;
        while row < ROW && before.weight == weight {
            let Some(parent) = before.parent.clone() else { break };
            before = parent;
            row += 1;
        }
        if row < ROW {
            return (onto, weight);
        }
        onto = before;
        weight = weight.saturating_mul(ROW + 1);
    }
}

/// Beyond so many pages over its ground a heap gets a ground of its own. Each of them is copied at every restore and looked
/// at in every step, while a new ground costs what the heap is large: the root is where the sum of both is least.
pub fn over_most(pages: u32) -> usize {
    (pages as usize * 16).isqrt()
}

impl Grounded {
    fn make<'a>(
        ledger: &Arc<Ledger>,
        bytes: usize,
        pages: impl Iterator<Item = (u32, &'a [u8])>,
        written_before: Arc<[u32]>,
    ) -> io::Result<Self> {
        let mut filled = 0;
        let ground = Ground::make(bytes, pages.inspect(|_| filled += PAGE))?;
        Ok(Self::new(ground, written_before, ledger.take(filled)))
    }

    fn new(ground: Ground, written_before: Arc<[u32]>, counted: Entry) -> Self {
        Self {
            ground,
            likely: Mutex::new(Likely { pages: written_before, told: [0; 2], tried: false }),
            _counted: counted,
        }
    }

    fn likely(&self) -> MutexGuard<'_, Likely> {
        self.likely.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Both, as far as that is not too much.
fn union(one: &Arc<[u32]>, other: &[u32]) -> Arc<[u32]> {
    let both: BTreeSet<u32> = one.iter().chain(other).copied().collect();
    if both.len() <= LIKELY_MOST { both.into_iter().collect() } else { one.clone() }
}
