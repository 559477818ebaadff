//! Reads any bytes as a heap object: unchanged, with corrected checksums, and as edits of a valid object.
//! Invariant: nothing panics, and an accepted object yields exactly the memory that its key names.
#![no_main]

use std::sync::Mutex;

use base::Digest;
use image::{Change, Codec, Frame, Image, PAGE};
use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "the codec of `js`, whole; the crate around it would bring its engine")]
#[path = "../../crates/js/src/image/mod.rs"]
mod image;

const MEMORY: usize = 32 * PAGE;

fuzz_target!(|bytes: &[u8]| {
    let Some((mode, bytes)) = bytes.split_first() else { return };
    let Ok(mut codec) = Codec::new() else { return };
    let mut old = vec![0; MEMORY];
    old[5 * PAGE..9 * PAGE].fill(3);
    let Ok(base) = Image::base(Digest::of(b"engine"), &old) else { return };
    let object = match mode % 5 {
        0 => bytes.to_vec(),
        1 => signed([b"TOKAHEAP\0\x01".as_slice(), &[0; 32], bytes].concat()),
        2 => signed([b"TOKAHEAP\0\x02".as_slice(), &[0; 32], bytes].concat()),
        // Everything except the packed content is valid.
        3 => {
            let mut object = good(&mut codec, &base, &old, bytes);
            let entries = object.get(117..121).map_or(0, |count| usize::from(count[3]) + 256 * usize::from(count[2]));
            object.truncate(121 + 36 * entries);
            object.extend(zstd::bulk::compress(bytes, 1).unwrap_or_default());
            signed(object)
        }
        _ => {
            let mut object = good(&mut codec, &base, &old, bytes);
            object.truncate(object.len().saturating_sub(32));
            for edit in bytes.chunks_exact(3) {
                let at = usize::from(u16::from_be_bytes([edit[0], edit[1]])) % object.len().max(1);
                if let Some(byte) = object.get_mut(at) {
                    *byte ^= edit[2];
                }
            }
            signed(object)
        }
    };
    let Ok(frame) = Frame::read(&object) else { return };
    if frame.memory_bytes > 64 << 20 {
        return;
    }
    let pages = Mutex::new(Vec::new());
    let take = |first: u32, run: &[u8]| {
        pages.lock().unwrap().extend((first..).zip(run.chunks(PAGE).map(<[u8]>::to_vec)));
    };
    let decoded = codec.decode(&frame, &base, |page| page_of(&old, page), &take);
    let pages = pages.into_inner().unwrap();
    let mut memory = old.clone();
    let applied = codec.apply(frame.key, &object, &base, &mut memory);
    assert_eq!(decoded.is_ok(), applied.is_ok(), "two ways to read an object");
    if decoded.is_ok() {
        assert!(pages.iter().all(|(page, whole)| whole == page_of(&memory, *page)), "two ways, two heaps");
    }
    if let Ok(image) = applied {
        assert_eq!(image.key(), frame.key);
        let fresh = Image::base(base.engine(), &memory).map(|fresh| fresh.key());
        assert_eq!(fresh, Ok(frame.key), "accepted, and not what its key names");
    }
});

fn page_of(memory: &[u8], page: u32) -> &[u8] {
    memory.get(page as usize * PAGE..(page as usize + 1) * PAGE).unwrap_or(&image::ZERO_PAGE)
}

/// Makes an object that changes the pages that the input names.
fn good(codec: &mut Codec, base: &Image, old: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut new = old.to_vec();
    for (at, byte) in bytes.iter().enumerate() {
        new[(usize::from(*byte) * 997 + at * 31) % MEMORY] ^= byte | 1;
    }
    let pages = |memory: &'_ [u8]| -> Vec<Vec<u8>> { memory.chunks_exact(PAGE).map(<[u8]>::to_vec).collect() };
    let (before, after) = (pages(old), pages(&new));
    let written = (0..).zip(&after).map(|(at, page)| (at, page.as_slice()));
    let Ok(next) = base.with_changes(written, base.pages()) else { return Vec::new() };
    let changes: Vec<Change<'_>> =
        (0..).zip(before.iter().zip(&after)).map(|(page, (old, new))| Change { page, old, new }).collect();
    codec.encode(base, &next, &changes).unwrap_or_default()
}

/// Corrects both checksums, so that the code behind their check is reached.
fn signed(mut object: Vec<u8>) -> Vec<u8> {
    if object.len() >= 116 {
        let key = Digest::of(&object[42..116]);
        object[10..42].copy_from_slice(key.as_bytes());
    }
    let sum = Digest::of(&object);
    object.extend_from_slice(sum.as_bytes());
    object
}
