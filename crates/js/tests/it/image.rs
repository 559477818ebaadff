//! Tests of the heap codec: an encoded object is decoded to the same heap, and every damaged object is refused.
//! Invariant: every kind of damage leads to an error that names the requested heap.

use std::sync::Mutex;

use base::Digest;
use js::image::{Codec, Damage, Error, Image, PAGE_BYTES, PAGES_PER_WASM_PAGE, PageChange, ParsedObject, ZERO_PAGE};
use proptest::prelude::*;

/// A codec and the engine whose heaps it encodes.
struct Fixture {
    codec: Codec,
    engine: Digest,
}

impl Fixture {
    fn new() -> Self {
        Self { codec: Codec::new().unwrap(), engine: Digest::of(b"an engine") }
    }

    fn base(&self, memory: &[u8]) -> Image {
        Image::base(self.engine, memory).unwrap()
    }

    /// Returns the image of the memory `new`, and its object as a difference to `parent`, the image of `old`.
    fn step(&mut self, parent: &Image, old: &[u8], new: &[u8]) -> (Image, Vec<u8>) {
        let next = parent.with_changes(pages(new), (new.len() / PAGE_BYTES) as u32).unwrap();
        let changes: Vec<PageChange<'_>> =
            pages(new).map(|(page, new)| PageChange { page, old: page_of(old, page), new }).collect();
        let object = self.codec.encode(parent, &next, &changes).unwrap();
        (next, object)
    }
}

fn pages(memory: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    (0..).zip(memory.chunks_exact(PAGE_BYTES))
}

fn page_of(memory: &[u8], page: u32) -> &[u8] {
    memory.get(page as usize * PAGE_BYTES..(page as usize + 1) * PAGE_BYTES).unwrap_or(&ZERO_PAGE)
}

/// Returns a memory of this size with some bytes, given as page, offset and byte.
fn memory(wasm_pages: u32, writes: &[(u32, u16, u8)]) -> Vec<u8> {
    let mut memory = vec![0; (wasm_pages * PAGES_PER_WASM_PAGE) as usize * PAGE_BYTES];
    write(&mut memory, writes);
    memory
}

fn write(memory: &mut [u8], writes: &[(u32, u16, u8)]) {
    let pages = (memory.len() / PAGE_BYTES) as u32;
    for (page, at, byte) in writes {
        memory[(page % pages) as usize * PAGE_BYTES + *at as usize % PAGE_BYTES] = *byte;
    }
}

fn writes() -> impl Strategy<Value = Vec<(u32, u16, u8)>> {
    prop::collection::vec(any::<(u32, u16, u8)>(), 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_written_object_is_read_back(first in writes(), then in writes(), wasm_pages in 1u32..8, grown in 0u32..4) {
        let mut fixture = Fixture::new();
        let old = memory(wasm_pages, &first);
        let mut new = old.clone();
        new.resize(((wasm_pages + grown) * PAGES_PER_WASM_PAGE) as usize * PAGE_BYTES, 0);
        write(&mut new, &then);
        let base = fixture.base(&old);
        prop_assume!(new != old);
        let (next, object) = fixture.step(&base, &old, &new);
        let parsed = ParsedObject::parse(&object).unwrap();
        prop_assert_eq!((parsed.key, parsed.parent, parsed.engine), (next.key(), None, fixture.engine));
        prop_assert_eq!(parsed.memory_bytes, new.len() as u64);

        let mut restored = old.clone();
        let image = fixture.codec.apply(next.key(), &object, &base, &mut restored).unwrap();
        prop_assert!(restored == new);
        prop_assert_eq!(image.key(), next.key());
        prop_assert!(!image.is_base());

        let (image, pages) = decoded(&mut fixture.codec, &parsed, &base, &old).unwrap();
        prop_assert_eq!(image.key(), next.key());
        prop_assert_eq!(pages.iter().map(|(page, _)| *page).collect::<Vec<_>>(), base.differing(&next));
        for (page, bytes) in pages {
            prop_assert!(bytes == page_of(&new, page));
        }
    }

    /// Changes one byte of a small object, at any position and to any value.
    #[test]
    fn any_changed_byte_is_an_error(at in any::<prop::sample::Index>(), flip in 1u8.., then in writes()) {
        let mut fixture = Fixture::new();
        let old = memory(2, &[(1, 7, 9)]);
        let mut new = old.clone();
        write(&mut new, &then);
        prop_assume!(new != old);
        let base = fixture.base(&old);
        let (next, object) = fixture.step(&base, &old, &new);
        let mut damaged = object.clone();
        damaged[at.index(object.len())] ^= flip;
        let error = fixture.codec.apply(next.key(), &damaged, &base, &mut old.clone()).unwrap_err();
        match error {
            Error::NotAHeap => prop_assert!(at.index(object.len()) < 8),
            Error::Damaged { key, .. } => prop_assert!(key == next.key() || (10..42).contains(&at.index(object.len()))),
            other => prop_assert!(false, "{other}"),
        }
        prop_assert!(ParsedObject::parse(&damaged).is_err(), "a parsed object has matching checksums");
    }

    #[test]
    fn any_other_length_is_an_error(cut in any::<prop::sample::Index>(), more in prop::collection::vec(any::<u8>(), 1..40)) {
        let mut fixture = Fixture::new();
        let old = memory(1, &[]);
        let base = fixture.base(&old);
        let (next, object) = fixture.step(&base, &old, &memory(1, &[(3, 3, 3), (9, 1, 1)]));
        let longer = [object.as_slice(), &more].concat();
        for damaged in [&object[..cut.index(object.len())], &longer] {
            prop_assert!(fixture.codec.apply(next.key(), damaged, &base, &mut old.clone()).is_err());
        }
    }

    #[test]
    fn equal_memories_have_equal_keys(first in writes(), then in writes(), grown in 0u32..3) {
        let mut fixture = Fixture::new();
        let start = memory(2, &[(0, 0, 1)]);
        let base = fixture.base(&start);
        let mut end = start.clone();
        write(&mut end, &first);
        let one = base.with_changes(pages(&end), 2 * PAGES_PER_WASM_PAGE).unwrap();
        end.resize(((2 + grown) * PAGES_PER_WASM_PAGE) as usize * PAGE_BYTES, 0);
        write(&mut end, &then);
        let stepwise = one.with_changes(pages(&end), (2 + grown) * PAGES_PER_WASM_PAGE).unwrap();
        let at_once = base.with_changes(pages(&end), (2 + grown) * PAGES_PER_WASM_PAGE).unwrap();
        let fresh = fixture.base(&end);
        prop_assert_eq!(stepwise.key(), at_once.key());
        prop_assert_eq!(stepwise.key(), fresh.key());
        prop_assert_eq!(fresh.differing(&stepwise), Vec::<u32>::new());
        let mut other = end.clone();
        other[0] ^= 1;
        prop_assert_ne!(fixture.base(&other).key(), fresh.key());
        fixture.engine = Digest::of(b"another engine");
        prop_assert_ne!(fixture.base(&end).key(), fresh.key());
    }

    #[test]
    fn a_merged_chain_is_the_same_heap(steps in prop::collection::vec(writes(), 2..6), grown in 0u32..3) {
        let mut fixture = Fixture::new();
        let start = memory(2, &[(5, 5, 5)]);
        let base = fixture.base(&start);
        let (mut memories, mut images, mut objects) = (vec![start.clone()], vec![base.clone()], Vec::new());
        for (at, writes) in steps.iter().enumerate() {
            let mut next = memories[memories.len() - 1].clone();
            next.resize(((2 + grown * at as u32) * PAGES_PER_WASM_PAGE) as usize * PAGE_BYTES, 0);
            write(&mut next, writes);
            if next == memories[memories.len() - 1] {
                continue;
            }
            let (image, object) = fixture.step(&images[images.len() - 1], &memories[memories.len() - 1], &next);
            objects.push((image.key(), object));
            memories.push(next);
            images.push(image);
        }
        let (last, key) = (&memories[memories.len() - 1], images[images.len() - 1].key());
        prop_assume!(key != base.key() && !objects.is_empty());
        for from in 0..images.len() - 1 {
            prop_assume!(images[from].key() != key);
            let chain: Vec<(Digest, &[u8])> = objects[from..].iter().map(|(key, object)| (*key, object.as_slice())).collect();
            let old = &memories[from];
            let merged = fixture
                .codec
                .merge(&images[from], &chain, |page, into| into.copy_from_slice(page_of(old, page)))
                .unwrap();
            let mut restored = old.clone();
            let image = fixture.codec.apply(key, &merged, &images[from], &mut restored).unwrap();
            prop_assert!(&restored == last);
            prop_assert_eq!(image.key(), key);
            // If only pages beyond the ancestor's memory changed, no page of the ancestor is read.
            let mut was_read = false;
            let wrong = fixture.codec.merge(&images[from], &chain, |_, into| {
                was_read = true;
                into.fill(0xAA);
            });
            prop_assert!(wrong.is_err() || !was_read, "a page that the ancestor does not have");
        }
    }
}

/// Changes an object and makes its checksum match again.
fn forged(mut object: Vec<u8>, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    object.truncate(object.len() - 32);
    change(&mut object);
    let sum = Digest::of(&object);
    object.extend_from_slice(sum.as_bytes());
    object
}

/// Changes an object and makes its key match as well, so that it is another heap.
fn forged_with_key(object: Vec<u8>, change: impl FnOnce(&mut Vec<u8>)) -> (Digest, Vec<u8>) {
    let object = forged(object, |object| {
        change(object);
        let key = Digest::of(&object[42..116]);
        object[10..42].copy_from_slice(key.as_bytes());
    });
    (Digest::of(&object[42..116]), object)
}

fn damage_of(fixture: &mut Fixture, base: &Image, old: &[u8], key: Digest, object: &[u8]) -> Damage {
    match fixture.codec.apply(key, object, base, &mut old.to_vec()) {
        Err(Error::Damaged { key: named, damage }) => {
            assert_eq!(named, key, "{damage}");
            damage
        }
        other => panic!("{other:?}"),
    }
}

/// An object with two changed pages, whose parent is the base image.
struct Sample {
    /// The memory of the base image.
    old: Vec<u8>,
    base: Image,
    next: Image,
    object: Vec<u8>,
}

/// Returns an object in which the byte that marks a parent is at 116, the count of changed pages at 117, the list
/// entries at 121 and 157, and the packed pages from 193.
fn sample(fixture: &mut Fixture) -> Sample {
    let old = memory(1, &[(0, 0, 1)]);
    let base = fixture.base(&old);
    let (next, object) = fixture.step(&base, &old, &memory(1, &[(0, 0, 1), (2, 9, 8), (5, 100, 77)]));
    assert_eq!(
        (object[116], &object[117..121], &object[121..125]),
        (0, [0, 0, 0, 2].as_slice(), [0, 0, 0, 2].as_slice())
    );
    Sample { old, base, next, object }
}

#[test]
fn forged_lists_of_pages_are_refused() {
    let mut fixture = Fixture::new();
    let Sample { old, base, next, object } = sample(&mut fixture);
    let key = next.key();
    let renumbered = |at: usize, page: u8| forged(object.clone(), |bytes| bytes[at + 3] = page);
    assert_eq!(damage_of(&mut fixture, &base, &old, key, &renumbered(157, 2)), Damage::Order(2), "a page listed twice");
    assert_eq!(damage_of(&mut fixture, &base, &old, key, &renumbered(157, 1)), Damage::Order(1), "falling numbers");
    assert_eq!(damage_of(&mut fixture, &base, &old, key, &renumbered(157, 16)), Damage::Range(16));
    assert_eq!(damage_of(&mut fixture, &base, &old, key, &renumbered(157, 6)), Damage::Root, "another page");
    let digest = forged(object.clone(), |bytes| bytes[130] ^= 1);
    assert_eq!(damage_of(&mut fixture, &base, &old, key, &digest), Damage::Root);
    let fewer = forged(object.clone(), |bytes| {
        bytes[120] = 1;
        bytes.drain(157..193);
    });
    assert_eq!(damage_of(&mut fixture, &base, &old, key, &fewer), Damage::Root, "a page too few");
    let many = forged(object.clone(), |bytes| bytes[117..121].fill(0xFF));
    assert_eq!(damage_of(&mut fixture, &base, &old, key, &many), Damage::Truncated);
    let mark = forged(object.clone(), |bytes| bytes[116] = 2);
    assert_eq!(damage_of(&mut fixture, &base, &old, key, &mark), Damage::ParentMark);
    let own_parent = forged(object.clone(), |bytes| {
        bytes[116] = 1;
        bytes.splice(117..117, *key.as_bytes());
    });
    assert_eq!(damage_of(&mut fixture, &base, &old, key, &own_parent), Damage::OwnParent);
}

#[test]
fn forged_pages_are_refused() {
    let mut fixture = Fixture::new();
    let Sample { old, base, next, object } = sample(&mut fixture);
    let key = next.key();
    let mut new = old.clone();
    fixture.codec.apply(key, &object, &base, &mut new).unwrap();
    let whole = differences(&old, &new, &base.differing(&next));
    let runs = zstd::bulk::decompress(&object[193..object.len() - 32], 2 * PAGE_BYTES).unwrap();
    assert!(runs.len() < 100 && object[9] == 2, "only the words that differ");
    for (packing, right, wrong) in [(1, whole, vec![0; 2 * PAGE_BYTES]), (2, runs, vec![0; 4])] {
        let packed = |bytes: &[u8]| {
            forged(object.clone(), |object| {
                object[9] = packing;
                object.truncate(193);
                object.extend_from_slice(bytes);
            })
        };
        let compress = |bytes: &[u8]| zstd::bulk::compress(bytes, 1).unwrap();
        let mut damage = |bytes: &[u8]| damage_of(&mut fixture, &base, &old, key, &packed(bytes));
        assert_eq!(damage(&compress(&wrong)), Damage::Page(2));
        assert_eq!(damage(&[]), Damage::Packed);
        assert_eq!(damage(b"not zstd"), Damage::Packed);
        // 16 GiB of zeros compress to 1.5 MB. The codec unpacks only one page before it finds the damage.
        assert_eq!(damage(&compress(&vec![0; 64 << 20])), Damage::Page(2));
        assert_eq!(damage(&compress(&[right.as_slice(), &[0]].concat())), Damage::Packed);
        assert_eq!(damage(&compress(&right[..right.len() - 1])), Damage::Packed);
        let (first, second) = right.split_at(right.len() / 2);
        assert_eq!(damage(&[compress(first), compress(second)].concat()), Damage::Packed, "two frames");
        assert_eq!(damage(&[compress(&right), compress(b"")].concat()), Damage::Packed);
        let with_skippable_frame = [compress(&right).as_slice(), &[0x50, 0x2A, 0x4D, 0x18, 2, 0, 0, 0, 7, 7]].concat();
        assert_eq!(damage(&with_skippable_frame), Damage::Packed, "a skippable frame");
        // Objects that an earlier version packed stay readable.
        let mut restored = old.clone();
        fixture.codec.apply(key, &packed(&compress(&right)), &base, &mut restored).unwrap();
        assert!(restored == new);
    }
    let unknown = forged(object.clone(), |object| object[9] = 3);
    assert_eq!(damage_of(&mut fixture, &base, &old, key, &unknown), Damage::Format(3));
}

/// Returns the differences of whole pages, new XOR old.
fn differences(old: &[u8], new: &[u8], pages: &[u32]) -> Vec<u8> {
    let difference = |page: &u32| {
        let (old, new) = (page_of(old, *page), page_of(new, *page));
        old.iter().zip(new).map(|(old, new)| old ^ new).collect::<Vec<u8>>()
    };
    pages.iter().flat_map(difference).collect()
}

type Pages = Vec<(u32, Vec<u8>)>;

/// Returns the image of an object and its changed pages.
fn decoded(codec: &mut Codec, object: &ParsedObject<'_>, base: &Image, old: &[u8]) -> Result<(Image, Pages), Error> {
    let taken = Mutex::new(Vec::new());
    let take = |first: u32, pages: &[u8]| {
        taken.lock().unwrap().extend((first..).zip(pages.chunks(PAGE_BYTES).map(<[u8]>::to_vec)));
    };
    let image = codec.decode(object, base, |page| page_of(old, page), &take)?;
    let mut taken = taken.into_inner().unwrap();
    taken.sort();
    Ok((image, taken))
}

/// An object with this number of pages is verified on a second thread.
#[test]
fn a_large_heap_is_read_and_its_forged_pages_are_refused() {
    let mut fixture = Fixture::new();
    let old = memory(64, &[(0, 0, 1)]);
    let base = fixture.base(&old);
    let writes: Vec<_> = (0..1000).map(|page| (page, page as u16, (page % 250) as u8 + 1)).collect();
    let new = memory(64, &writes);
    let (next, object) = fixture.step(&base, &old, &new);
    let parsed = ParsedObject::parse_as(next.key(), &object).unwrap();
    let (image, pages) = decoded(&mut fixture.codec, &parsed, &base, &old).unwrap();
    let numbers: Vec<u32> = pages.iter().map(|(page, _)| *page).collect();
    assert!(image.key() == next.key() && numbers.len() > 900 && numbers.is_sorted());
    assert!(pages.iter().all(|(page, bytes)| *bytes == page_of(&new, *page)));
    let packed_at = 121 + 36 * numbers.len();
    let right = differences(&old, &new, &numbers);
    let mut damage = |pages: &[u8]| {
        let object = forged(object.clone(), |object| {
            object[9] = 1;
            object.truncate(packed_at);
            object.extend_from_slice(&zstd::bulk::compress(pages, 1).unwrap());
        });
        match decoded(&mut fixture.codec, &ParsedObject::parse_as(next.key(), &object).unwrap(), &base, &old) {
            Err(Error::Damaged { key, damage }) if key == next.key() => damage,
            other => panic!("{:?}", other.map(|(_, pages)| pages.len())),
        }
    };
    for at in [0, 63, 64, 499, 500, numbers.len() - 1] {
        let mut wrong = right.clone();
        wrong[at * PAGE_BYTES + 7] ^= 1;
        assert_eq!(damage(&wrong), Damage::Page(numbers[at]));
    }
    let mut wrong = right.clone();
    [10, 700].into_iter().for_each(|at| wrong[at * PAGE_BYTES] ^= 1);
    assert_eq!(damage(&wrong), Damage::Page(numbers[10]), "the first of two wrong pages");
    assert_eq!(damage(&right[..right.len() - 1]), Damage::Packed);
    assert_eq!(damage(&[right.as_slice(), &[0]].concat()), Damage::Packed);
}

#[test]
fn forged_payloads_are_refused() {
    let mut fixture = Fixture::new();
    let Sample { old, base, next, object } = sample(&mut fixture);
    let (key, bigger) =
        forged_with_key(object.clone(), |bytes| bytes[76..84].copy_from_slice(&(1u64 << 17).to_be_bytes()));
    assert_eq!(damage_of(&mut fixture, &base, &old, key, &bigger), Damage::Root, "a wrong memory size");
    for size in [0, 1, 4096, 1u64 << 33, u64::MAX] {
        let (key, odd) = forged_with_key(object.clone(), |bytes| bytes[76..84].copy_from_slice(&size.to_be_bytes()));
        assert_eq!(damage_of(&mut fixture, &base, &old, key, &odd), Damage::MemorySize(size));
    }
    let (key, root) = forged_with_key(object.clone(), |bytes| bytes[90] ^= 1);
    assert_eq!(damage_of(&mut fixture, &base, &old, key, &root), Damage::Root);
    assert_eq!(damage_of(&mut fixture, &base, &old, next.key(), &root), Damage::Swapped(key));
    let (key, foreign) = forged_with_key(object.clone(), |bytes| bytes[44..76].fill(7));
    let engine = Digest::from_bytes([7; 32]);
    let error = fixture.codec.apply(key, &foreign, &base, &mut old.clone()).unwrap_err();
    assert_eq!(error, Error::Engine { key, engine });
    let newer = forged(object.clone(), |bytes| bytes[9] = 3);
    assert_eq!(damage_of(&mut fixture, &base, &old, next.key(), &newer), Damage::Format(3));
    let (key, inner) = forged_with_key(object, |bytes| bytes[43] = 9);
    assert_eq!(damage_of(&mut fixture, &base, &old, key, &inner), Damage::Format(9));
}

#[test]
fn an_object_is_read_with_its_own_parent_only() {
    let mut fixture = Fixture::new();
    let Sample { old, base, next, object } = sample(&mut fixture);
    let middle = memory(1, &[(0, 0, 1), (2, 9, 8), (5, 100, 77)]);
    let (last, second) = fixture.step(&next, &middle, &memory(2, &[(0, 0, 3)]));
    assert_eq!(ParsedObject::parse(&second).unwrap().parent, Some(next.key()));
    let wrong = fixture.codec.apply(last.key(), &second, &base, &mut old.clone()).unwrap_err();
    assert_eq!(wrong, Error::Parent { key: last.key(), parent: Some(next.key()) });
    let wrong = fixture.codec.apply(next.key(), &object, &next, &mut middle.clone()).unwrap_err();
    assert_eq!(wrong, Error::Parent { key: next.key(), parent: None });
    let larger = fixture.base(&memory(3, &[]));
    assert_eq!(damage_of(&mut fixture, &larger, &old, next.key(), &object), Damage::Shrunk);
    assert_eq!(damage_of(&mut fixture, &base, &old, next.key(), &second), Damage::Swapped(last.key()));
    // The digests of the parent are right, but its memory is wrong.
    assert_eq!(damage_of(&mut fixture, &base, &vec![9; 16 * PAGE_BYTES], next.key(), &object), Damage::Page(2));
}

#[test]
fn an_unchanged_image_has_no_object() {
    let mut fixture = Fixture::new();
    let Sample { old, base, next, .. } = sample(&mut fixture);
    let same = base.with_changes(pages(&old), PAGES_PER_WASM_PAGE).unwrap();
    assert_eq!(fixture.codec.encode(&base, &same, &[]).unwrap_err(), Error::Same(base.key()));
    assert!(same.is_base());
    assert_eq!(fixture.codec.encode(&base, &next, &[]).unwrap_err(), Error::Incomplete(next.key()));
    assert_eq!(
        base.with_changes([(PAGES_PER_WASM_PAGE, ZERO_PAGE.as_slice())], PAGES_PER_WASM_PAGE).unwrap_err(),
        Error::NoPage(PAGES_PER_WASM_PAGE)
    );
    assert_eq!(base.with_changes([(0, b"short".as_slice())], PAGES_PER_WASM_PAGE).unwrap_err(), Error::NoPage(0));
    assert!(matches!(base.with_changes([], PAGES_PER_WASM_PAGE - 1), Err(Error::MemorySize(_))));
}

/// `cargo test -p js --release --test it image:: -- --ignored --nocapture`
#[test]
#[ignore = "prints times; run it in a release build"]
fn print_the_cost_of_a_small_step() {
    let mut fixture = Fixture::new();
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let old: Vec<u8> = std::iter::repeat_with(|| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 56) as u8
    })
    .take(2304 * PAGE_BYTES)
    .collect();
    let mut new = old.clone();
    let touched: Vec<u32> = (0..12).map(|at| at * 190 + 3).collect();
    for page in &touched {
        for at in 0..30 {
            new[*page as usize * PAGE_BYTES + at * 131] ^= 0x5A;
        }
    }
    let time = |label: &str, rounds: u32, work: &mut dyn FnMut()| {
        work();
        let start = std::time::Instant::now();
        (0..rounds).for_each(|_| work());
        println!("{label}: {:.1} µs", start.elapsed().as_secs_f64() * 1e6 / f64::from(rounds));
    };
    time("image of 9.4 MB", 10, &mut || drop(fixture.base(&old)));
    let base = fixture.base(&old);
    let changes: Vec<PageChange<'_>> = touched
        .iter()
        .map(|page| PageChange { page: *page, old: page_of(&old, *page), new: page_of(&new, *page) })
        .collect();
    let written_pages = || changes.iter().map(|change| (change.page, change.new));
    let next = base.with_changes(written_pages(), 2304).unwrap();
    time("next image, 12 pages", 1000, &mut || drop(base.with_changes(written_pages(), 2304).unwrap()));
    let object = fixture.codec.encode(&base, &next, &changes).unwrap();
    println!("object: {} bytes", object.len());
    time("encode", 1000, &mut || drop(fixture.codec.encode(&base, &next, &changes).unwrap()));
    time("parse", 1000, &mut || assert!(ParsedObject::parse(&object).is_ok()));
    let key = next.key();
    time("decode", 1000, &mut || {
        let parsed = ParsedObject::parse_as(key, &object).unwrap();
        drop(decoded(&mut fixture.codec, &parsed, &base, &old).unwrap());
    });
    let empty = fixture.base(&vec![0; 16 * PAGE_BYTES]);
    let (all, whole) = fixture.step(&empty, &vec![0; 16 * PAGE_BYTES], &old);
    println!("whole: {} bytes", whole.len());
    time("whole, unpacked and verified", 10, &mut || {
        let mut memory = Vec::new();
        fixture.codec.apply(all.key(), &whole, &empty, &mut memory).unwrap();
    });
}
