//! Merges a chain of objects into one object. The differences of the pages are combined by XOR, so the memory of the
//! heaps in between is not built.
//! Invariant: a merged object is returned only after the content of each of its pages was verified, because the caller
//! may delete the objects that it replaces.

use std::collections::BTreeMap;

use base::Digest;

use super::digest_tree::digest_of;
use super::object::{append_checksum, start_object};
use super::page_diff::{PageBytes, xor};
use super::payload::HeapPayload;
use super::{Codec, Damage, Error, Image, ParsedObject, ZERO_PAGE};

impl Codec {
    /// Returns one object that contains the heap of the last of `objects` as a difference to `ancestor`. The oldest
    /// object comes first, and its parent is `ancestor`. `read_page` copies a page of the ancestor's memory.
    pub fn merge(
        &mut self,
        ancestor: &Image,
        objects: &[(Digest, &[u8])],
        mut read_page: impl FnMut(u32, &mut PageBytes),
    ) -> Result<Vec<u8>, Error> {
        let mut differences: BTreeMap<u32, Box<PageBytes>> = BTreeMap::new();
        let mut last = ancestor.clone();
        for (key, object) in objects {
            let object = ParsedObject::parse_as(*key, object)?;
            let (next, changed) = object.image(&last)?;
            self.unpack_differences(&object, changed.len(), |index, difference| {
                let sum = differences.entry(changed[index].0).or_insert_with(|| Box::new(ZERO_PAGE));
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
            let mut content = ZERO_PAGE;
            if *page < ancestor.pages() {
                read_page(*page, &mut content);
            }
            xor(&mut content, difference.as_slice());
            let digest = digest_of(&content);
            if last.digest(*page) != Some(digest) {
                return Err(Error::Damaged { key, damage: Damage::Page(*page) });
            }
            changed.push((*page, digest));
        }
        // A page that changed within the chain and then returned to its first content is not part of the merged object.
        let differing = ancestor.differing(&last);
        differences.retain(|page, _| differing.binary_search(page).is_ok());
        changed.retain(|(page, _)| differing.binary_search(page).is_ok());
        self.collect_differences(differences.values().map(AsRef::as_ref));
        let parent = (!ancestor.is_base()).then(|| ancestor.key());
        let payload = HeapPayload { engine: last.engine(), pages: last.pages(), root: last.root() };
        let mut object = start_object(&payload, parent, &changed);
        self.append_packed(&mut object)?;
        append_checksum(&mut object);
        Ok(object)
    }
}
