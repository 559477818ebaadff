//! A chain of objects as one: differences add up, so no memory is built on the way.
//! Invariant: the merged object is written only after every page it holds was checked against the ancestor's memory, since
//! it takes the place of objects that may be thrown away.

use std::collections::BTreeMap;

use base::Digest;

use super::codec::{Page, xor};
use super::frame::{self, Payload};
use super::tree::digest_of;
use super::{Codec, Damage, Error, Frame, Image, ZERO_PAGE};

impl Codec {
    /// One object for the last of `objects` (oldest first, the first made against `ancestor`), made against `ancestor`.
    /// `read` gives a page of the ancestor's memory.
    pub fn merge(
        &mut self,
        ancestor: &Image,
        objects: &[(Digest, &[u8])],
        mut read: impl FnMut(u32, &mut Page),
    ) -> Result<Vec<u8>, Error> {
        let mut differences: BTreeMap<u32, Box<Page>> = BTreeMap::new();
        let mut last = ancestor.clone();
        for (key, object) in objects {
            let frame = Frame::read_as(*key, object)?;
            let (next, changed) = frame.image(&last)?;
            self.differences(&frame, changed.len(), |at, difference| {
                let sum = differences.entry(changed[at].0).or_insert_with(|| Box::new(ZERO_PAGE));
                xor(sum.as_mut_slice(), difference);
                Ok(())
            })?;
            last = next;
        }
        let key = last.key();
        if key == ancestor.key() {
            return Err(Error::Same(key));
        }
        let mut changed = Vec::new();
        for (page, difference) in &differences {
            let mut whole = ZERO_PAGE;
            if *page < ancestor.pages() {
                read(*page, &mut whole);
            }
            xor(&mut whole, difference.as_slice());
            let digest = digest_of(&whole);
            if last.digest(*page) != Some(digest) {
                return Err(Error::Damaged { key, damage: Damage::Page(*page) });
            }
            changed.push((*page, digest));
        }
        let differing = ancestor.differing(&last);
        differences.retain(|page, _| differing.binary_search(page).is_ok());
        changed.retain(|(page, _)| differing.binary_search(page).is_ok());
        self.collect(differences.values().map(AsRef::as_ref));
        let parent = (!ancestor.is_base()).then(|| ancestor.key());
        let payload = Payload { engine: last.engine(), pages: last.pages(), root: last.root() };
        let mut object = frame::open(&payload, parent, &changed);
        self.pack(&mut object)?;
        frame::close(&mut object);
        Ok(object)
    }
}
