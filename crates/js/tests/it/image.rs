//! The heap codec from outside: what is written is read back, and nothing else is ever read.
//! Invariant: every way to damage an object ends in an error that names the heap it was to be.

use std::sync::Mutex;

use base::Digest;
use js::image::{Change, Codec, Damage, Error, Frame, GRAIN, Image, PAGE, ZERO_PAGE};
use proptest::prelude::*;

/// A memory and the images it went through.
struct House {
    codec: Codec,
    engine: Digest,
}

impl House {
    fn new() -> Self {
        Self { codec: Codec::new().unwrap(), engine: Digest::of(b"an engine") }
    }

    fn base(&self, memory: &[u8]) -> Image {
        Image::base(self.engine, memory).unwrap()
    }

    fn step(&mut self, parent: &Image, old: &[u8], new: &[u8]) -> (Image, Vec<u8>) {
        let next = parent.with_changes(pages(new), (new.len() / PAGE) as u32).unwrap();
        let changes: Vec<Change<'_>> =
            pages(new).map(|(page, new)| Change { page, old: page_of(old, page), new }).collect();
        let object = self.codec.encode(parent, &next, &changes).unwrap();
        (next, object)
    }
}

fn pages(memory: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    (0..).zip(memory.chunks_exact(PAGE))
}

fn page_of(memory: &[u8], page: u32) -> &[u8] {
    memory.get(page as usize * PAGE..(page as usize + 1) * PAGE).unwrap_or(&ZERO_PAGE)
}

fn memory(grains: u32, writes: &[(u32, u16, u8)]) -> Vec<u8> {
    let mut memory = vec![0; (grains * GRAIN) as usize * PAGE];
    write(&mut memory, writes);
    memory
}

fn write(memory: &mut [u8], writes: &[(u32, u16, u8)]) {
    let pages = (memory.len() / PAGE) as u32;
    for (page, at, byte) in writes {
        memory[(page % pages) as usize * PAGE + *at as usize % PAGE] = *byte;
    }
}

fn writes() -> impl Strategy<Value = Vec<(u32, u16, u8)>> {
    prop::collection::vec(any::<(u32, u16, u8)>(), 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read_back(first in writes(), then in writes(), grains in 1u32..8, grown in 0u32..4) {
        let mut house = House::new();
        let old = memory(grains, &first);
        let mut new = old.clone();
        new.resize(((grains + grown) * GRAIN) as usize * PAGE, 0);
        write(&mut new, &then);
        let base = house.base(&old);
        prop_assume!(new != old);
        let (next, object) = house.step(&base, &old, &new);
        let frame = Frame::read(&object).unwrap();
        prop_assert_eq!((frame.key, frame.parent, frame.engine), (next.key(), None, house.engine));
        prop_assert_eq!(frame.memory_bytes, new.len() as u64);

        let mut restored = old.clone();
        let image = house.codec.apply(next.key(), &object, &base, &mut restored).unwrap();
        prop_assert!(restored == new);
        prop_assert_eq!(image.key(), next.key());
        prop_assert!(!image.is_base());

        let (image, pages) = decoded(&mut house.codec, &frame, &base, &old).unwrap();
        prop_assert_eq!(image.key(), next.key());
        prop_assert_eq!(pages.iter().map(|(page, _)| *page).collect::<Vec<_>>(), base.differing(&next));
        for (page, bytes) in pages {
            prop_assert!(bytes == page_of(&new, page));
        }
    }

    /// One byte in a small object, wherever it stands and whatever it becomes.
    #[test]
    fn any_changed_byte_is_an_error(at in any::<prop::sample::Index>(), flip in 1u8.., then in writes()) {
        let mut house = House::new();
        let old = memory(2, &[(1, 7, 9)]);
        let mut new = old.clone();
        write(&mut new, &then);
        prop_assume!(new != old);
        let base = house.base(&old);
        let (next, object) = house.step(&base, &old, &new);
        let mut damaged = object.clone();
        damaged[at.index(object.len())] ^= flip;
        let error = house.codec.apply(next.key(), &damaged, &base, &mut old.clone()).unwrap_err();
        match error {
            Error::NotAHeap => prop_assert!(at.index(object.len()) < 8),
            Error::Damaged { key, .. } => prop_assert!(key == next.key() || (10..42).contains(&at.index(object.len()))),
            other => prop_assert!(false, "{other}"),
        }
        prop_assert!(Frame::read(&damaged).is_err(), "a frame has all its checksums");
    }

    #[test]
    fn any_other_length_is_an_error(cut in any::<prop::sample::Index>(), more in prop::collection::vec(any::<u8>(), 1..40)) {
        let mut house = House::new();
        let old = memory(1, &[]);
        let base = house.base(&old);
        let (next, object) = house.step(&base, &old, &memory(1, &[(3, 3, 3), (9, 1, 1)]));
        let longer = [object.as_slice(), &more].concat();
        for damaged in [&object[..cut.index(object.len())], &longer] {
            prop_assert!(house.codec.apply(next.key(), damaged, &base, &mut old.clone()).is_err());
        }
    }

    #[test]
    fn equal_memories_have_equal_keys(first in writes(), then in writes(), grown in 0u32..3) {
        let mut house = House::new();
        let start = memory(2, &[(0, 0, 1)]);
        let base = house.base(&start);
        let mut end = start.clone();
        write(&mut end, &first);
        let one = base.with_changes(pages(&end), 2 * GRAIN).unwrap();
        end.resize(((2 + grown) * GRAIN) as usize * PAGE, 0);
        write(&mut end, &then);
        let stepwise = one.with_changes(pages(&end), (2 + grown) * GRAIN).unwrap();
        let at_once = base.with_changes(pages(&end), (2 + grown) * GRAIN).unwrap();
        let fresh = house.base(&end);
        prop_assert_eq!(stepwise.key(), at_once.key());
        prop_assert_eq!(stepwise.key(), fresh.key());
        prop_assert_eq!(fresh.differing(&stepwise), Vec::<u32>::new());
        let mut other = end.clone();
        other[0] ^= 1;
        prop_assert_ne!(house.base(&other).key(), fresh.key());
        house.engine = Digest::of(b"another engine");
        prop_assert_ne!(house.base(&end).key(), fresh.key());
    }

    #[test]
    fn a_merged_chain_is_the_same_heap(steps in prop::collection::vec(writes(), 2..6), grown in 0u32..3) {
        let mut house = House::new();
        let start = memory(2, &[(5, 5, 5)]);
        let base = house.base(&start);
        let (mut memories, mut images, mut objects) = (vec![start.clone()], vec![base.clone()], Vec::new());
        for (at, writes) in steps.iter().enumerate() {
            let mut next = memories[memories.len() - 1].clone();
            next.resize(((2 + grown * at as u32) * GRAIN) as usize * PAGE, 0);
            write(&mut next, writes);
            if next == memories[memories.len() - 1] {
                continue;
            }
            let (image, object) = house.step(&images[images.len() - 1], &memories[memories.len() - 1], &next);
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
            let merged = house
                .codec
                .merge(&images[from], &chain, |page, into| into.copy_from_slice(page_of(old, page)))
                .unwrap();
            let mut restored = old.clone();
            let image = house.codec.apply(key, &merged, &images[from], &mut restored).unwrap();
            prop_assert!(&restored == last);
            prop_assert_eq!(image.key(), key);
            // Where only pages beyond the ancestor's memory changed, none of its own is asked for.
            let mut asked = false;
            let wrong = house.codec.merge(&images[from], &chain, |_, into| {
                asked = true;
                into.fill(0xAA);
            });
            prop_assert!(wrong.is_err() || !asked, "an ancestor's page that is not the ancestor's");
        }
    }
}

/// Rewrites the last 32 bytes, as somebody would who forges an object.
fn forged(mut object: Vec<u8>, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    object.truncate(object.len() - 32);
    change(&mut object);
    let sum = Digest::of(&object);
    object.extend_from_slice(sum.as_bytes());
    object
}

/// The same, with a payload whose own digest is right: then the key is another one.
fn renamed(object: Vec<u8>, change: impl FnOnce(&mut Vec<u8>)) -> (Digest, Vec<u8>) {
    let object = forged(object, |object| {
        change(object);
        let key = Digest::of(&object[42..116]);
        object[10..42].copy_from_slice(key.as_bytes());
    });
    (Digest::of(&object[42..116]), object)
}

fn damage_of(house: &mut House, base: &Image, old: &[u8], key: Digest, object: &[u8]) -> Damage {
    match house.codec.apply(key, object, base, &mut old.to_vec()) {
        Err(Error::Damaged { key: named, damage }) => {
            assert_eq!(named, key, "{damage}");
            damage
        }
        other => panic!("{other:?}"),
    }
}

/// Two changed pages against the base image: mark at 116, count at 117, entries at 121 and 157, packed pages from 193.
fn sample(house: &mut House) -> (Vec<u8>, Image, Image, Vec<u8>) {
    let old = memory(1, &[(0, 0, 1)]);
    let base = house.base(&old);
    let (next, object) = house.step(&base, &old, &memory(1, &[(0, 0, 1), (2, 9, 8), (5, 100, 77)]));
    assert_eq!(
        (object[116], &object[117..121], &object[121..125]),
        (0, [0, 0, 0, 2].as_slice(), [0, 0, 0, 2].as_slice())
    );
    (old, base, next, object)
}

#[test]
fn forged_lists_of_pages_are_refused() {
    let mut house = House::new();
    let (old, base, next, object) = sample(&mut house);
    let key = next.key();
    let number = |at: usize, page: u8| forged(object.clone(), |bytes| bytes[at + 3] = page);
    assert_eq!(damage_of(&mut house, &base, &old, key, &number(157, 2)), Damage::Order(2), "twice");
    assert_eq!(damage_of(&mut house, &base, &old, key, &number(157, 1)), Damage::Order(1), "falling");
    assert_eq!(damage_of(&mut house, &base, &old, key, &number(157, 16)), Damage::Range(16));
    assert_eq!(damage_of(&mut house, &base, &old, key, &number(157, 6)), Damage::Root, "moved");
    let digest = forged(object.clone(), |bytes| bytes[130] ^= 1);
    assert_eq!(damage_of(&mut house, &base, &old, key, &digest), Damage::Root);
    let fewer = forged(object.clone(), |bytes| {
        bytes[120] = 1;
        bytes.drain(157..193);
    });
    assert_eq!(damage_of(&mut house, &base, &old, key, &fewer), Damage::Root, "a page too few");
    let many = forged(object.clone(), |bytes| bytes[117..121].fill(0xFF));
    assert_eq!(damage_of(&mut house, &base, &old, key, &many), Damage::Truncated);
    let mark = forged(object.clone(), |bytes| bytes[116] = 2);
    assert_eq!(damage_of(&mut house, &base, &old, key, &mark), Damage::ParentMark);
    let own = forged(object.clone(), |bytes| {
        bytes[116] = 1;
        bytes.splice(117..117, *key.as_bytes());
    });
    assert_eq!(damage_of(&mut house, &base, &old, key, &own), Damage::OwnParent);
}

#[test]
fn forged_pages_are_refused() {
    let mut house = House::new();
    let (old, base, next, object) = sample(&mut house);
    let key = next.key();
    let mut new = old.clone();
    house.codec.apply(key, &object, &base, &mut new).unwrap();
    let whole = differences(&old, &new, &base.differing(&next));
    let runs = zstd::bulk::decompress(&object[193..object.len() - 32], 2 * PAGE).unwrap();
    assert!(runs.len() < 100 && object[9] == 2, "what differs, and nothing else");
    for (packing, right, wrong) in [(1, whole, vec![0; 2 * PAGE]), (2, runs, vec![0; 4])] {
        let packed = |bytes: &[u8]| {
            forged(object.clone(), |object| {
                object[9] = packing;
                object.truncate(193);
                object.extend_from_slice(bytes);
            })
        };
        let compress = |bytes: &[u8]| zstd::bulk::compress(bytes, 1).unwrap();
        let mut damage = |bytes: &[u8]| damage_of(&mut house, &base, &old, key, &packed(bytes));
        assert_eq!(damage(&compress(&wrong)), Damage::Page(2));
        assert_eq!(damage(&[]), Damage::Packed);
        assert_eq!(damage(b"not zstd"), Damage::Packed);
        // 16 GiB of zeros in 1.5 MB would be a bomb; a page is all that is ever unpacked before it is looked at.
        assert_eq!(damage(&compress(&vec![0; 64 << 20])), Damage::Page(2));
        assert_eq!(damage(&compress(&[right.as_slice(), &[0]].concat())), Damage::Packed);
        assert_eq!(damage(&compress(&right[..right.len() - 1])), Damage::Packed);
        let (first, second) = right.split_at(right.len() / 2);
        assert_eq!(damage(&[compress(first), compress(second)].concat()), Damage::Packed, "two frames");
        assert_eq!(damage(&[compress(&right), compress(b"")].concat()), Damage::Packed);
        let swallowed = [compress(&right).as_slice(), &[0x50, 0x2A, 0x4D, 0x18, 2, 0, 0, 0, 7, 7]].concat();
        assert_eq!(damage(&swallowed), Damage::Packed, "a skippable frame");
        // Also what an earlier version packed is read, for ever.
        let mut restored = old.clone();
        house.codec.apply(key, &packed(&compress(&right)), &base, &mut restored).unwrap();
        assert!(restored == new);
    }
    let unknown = forged(object.clone(), |object| object[9] = 3);
    assert_eq!(damage_of(&mut house, &base, &old, key, &unknown), Damage::Format(3));
}

/// Whole pages, new XOR old.
fn differences(old: &[u8], new: &[u8], pages: &[u32]) -> Vec<u8> {
    let difference = |page: &u32| {
        let (old, new) = (page_of(old, *page), page_of(new, *page));
        old.iter().zip(new).map(|(old, new)| old ^ new).collect::<Vec<u8>>()
    };
    pages.iter().flat_map(difference).collect()
}

type Pages = Vec<(u32, Vec<u8>)>;

/// The image of an object, and its changed pages.
fn decoded(codec: &mut Codec, frame: &Frame<'_>, base: &Image, old: &[u8]) -> Result<(Image, Pages), Error> {
    let taken = Mutex::new(Vec::new());
    let take = |first: u32, pages: &[u8]| {
        taken.lock().unwrap().extend((first..).zip(pages.chunks(PAGE).map(<[u8]>::to_vec)));
    };
    let image = codec.decode(frame, base, |page| page_of(old, page), &take)?;
    let mut taken = taken.into_inner().unwrap();
    taken.sort();
    Ok((image, taken))
}

/// A heap of so many pages is hashed on a thread of its own.
#[test]
fn a_large_heap_is_read_and_its_forged_pages_are_refused() {
    let mut house = House::new();
    let old = memory(64, &[(0, 0, 1)]);
    let base = house.base(&old);
    let writes: Vec<_> = (0..1000).map(|page| (page, page as u16, (page % 250) as u8 + 1)).collect();
    let new = memory(64, &writes);
    let (next, object) = house.step(&base, &old, &new);
    let frame = Frame::read_as(next.key(), &object).unwrap();
    let (image, pages) = decoded(&mut house.codec, &frame, &base, &old).unwrap();
    let numbers: Vec<u32> = pages.iter().map(|(page, _)| *page).collect();
    assert!(image.key() == next.key() && numbers.len() > 900 && numbers.is_sorted());
    assert!(pages.iter().all(|(page, bytes)| *bytes == page_of(&new, *page)));
    let packed_at = 121 + 36 * numbers.len();
    let right = differences(&old, &new, &numbers);
    let mut refused = |pages: &[u8]| {
        let object = forged(object.clone(), |object| {
            object[9] = 1;
            object.truncate(packed_at);
            object.extend_from_slice(&zstd::bulk::compress(pages, 1).unwrap());
        });
        match decoded(&mut house.codec, &Frame::read_as(next.key(), &object).unwrap(), &base, &old) {
            Err(Error::Damaged { key, damage }) if key == next.key() => damage,
            other => panic!("{:?}", other.map(|(_, pages)| pages.len())),
        }
    };
    for at in [0, 63, 64, 499, 500, numbers.len() - 1] {
        let mut wrong = right.clone();
        wrong[at * PAGE + 7] ^= 1;
        assert_eq!(refused(&wrong), Damage::Page(numbers[at]));
    }
    let mut wrong = right.clone();
    [10, 700].into_iter().for_each(|at| wrong[at * PAGE] ^= 1);
    assert_eq!(refused(&wrong), Damage::Page(numbers[10]), "of two mistakes the first");
    assert_eq!(refused(&right[..right.len() - 1]), Damage::Packed);
    assert_eq!(refused(&[right.as_slice(), &[0]].concat()), Damage::Packed);
}

#[test]
fn forged_payloads_are_another_heap_or_none() {
    let mut house = House::new();
    let (old, base, next, object) = sample(&mut house);
    let (key, bigger) = renamed(object.clone(), |bytes| bytes[76..84].copy_from_slice(&(1u64 << 17).to_be_bytes()));
    assert_eq!(damage_of(&mut house, &base, &old, key, &bigger), Damage::Root, "a memory size that lies");
    for size in [0, 1, 4096, 1u64 << 33, u64::MAX] {
        let (key, odd) = renamed(object.clone(), |bytes| bytes[76..84].copy_from_slice(&size.to_be_bytes()));
        assert_eq!(damage_of(&mut house, &base, &old, key, &odd), Damage::MemorySize(size));
    }
    let (key, root) = renamed(object.clone(), |bytes| bytes[90] ^= 1);
    assert_eq!(damage_of(&mut house, &base, &old, key, &root), Damage::Root);
    assert_eq!(damage_of(&mut house, &base, &old, next.key(), &root), Damage::Swapped(key));
    let (key, foreign) = renamed(object.clone(), |bytes| bytes[44..76].fill(7));
    let engine = Digest::from_bytes([7; 32]);
    let found = house.codec.apply(key, &foreign, &base, &mut old.clone()).unwrap_err();
    assert_eq!(found, Error::Engine { key, engine });
    let newer = forged(object.clone(), |bytes| bytes[9] = 3);
    assert_eq!(damage_of(&mut house, &base, &old, next.key(), &newer), Damage::Format(3));
    let (key, inner) = renamed(object, |bytes| bytes[43] = 9);
    assert_eq!(damage_of(&mut house, &base, &old, key, &inner), Damage::Format(9));
}

#[test]
fn an_object_is_read_beside_its_own_parent_only() {
    let mut house = House::new();
    let (old, base, next, object) = sample(&mut house);
    let middle = memory(1, &[(0, 0, 1), (2, 9, 8), (5, 100, 77)]);
    let (last, second) = house.step(&next, &middle, &memory(2, &[(0, 0, 3)]));
    assert_eq!(Frame::read(&second).unwrap().parent, Some(next.key()));
    let wrong = house.codec.apply(last.key(), &second, &base, &mut old.clone()).unwrap_err();
    assert_eq!(wrong, Error::Parent { key: last.key(), parent: Some(next.key()) });
    let wrong = house.codec.apply(next.key(), &object, &next, &mut middle.clone()).unwrap_err();
    assert_eq!(wrong, Error::Parent { key: next.key(), parent: None });
    let larger = house.base(&memory(3, &[]));
    assert_eq!(damage_of(&mut house, &larger, &old, next.key(), &object), Damage::Shrunk);
    assert_eq!(damage_of(&mut house, &base, &old, next.key(), &second), Damage::Swapped(last.key()));
    // The right digests beside the wrong memory.
    assert_eq!(damage_of(&mut house, &base, &vec![9; 16 * PAGE], next.key(), &object), Damage::Page(2));
}

#[test]
fn an_image_that_did_not_change_has_no_object() {
    let mut house = House::new();
    let (old, base, next, _) = sample(&mut house);
    let same = base.with_changes(pages(&old), GRAIN).unwrap();
    assert_eq!(house.codec.encode(&base, &same, &[]).unwrap_err(), Error::Same(base.key()));
    assert!(same.is_base());
    assert_eq!(house.codec.encode(&base, &next, &[]).unwrap_err(), Error::Incomplete(next.key()));
    assert_eq!(base.with_changes([(GRAIN, ZERO_PAGE.as_slice())], GRAIN).unwrap_err(), Error::NoPage(GRAIN));
    assert_eq!(base.with_changes([(0, b"short".as_slice())], GRAIN).unwrap_err(), Error::NoPage(0));
    assert!(matches!(base.with_changes([], GRAIN - 1), Err(Error::MemorySize(_))));
}

/// `cargo test -p js --release --test it image:: -- --ignored --nocapture`
#[test]
#[ignore = "prints times; run it in a release build"]
fn what_a_small_step_costs() {
    let mut house = House::new();
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let old: Vec<u8> = std::iter::repeat_with(|| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 56) as u8
    })
    .take(2304 * PAGE)
    .collect();
    let mut new = old.clone();
    let touched: Vec<u32> = (0..12).map(|at| at * 190 + 3).collect();
    for page in &touched {
        for at in 0..30 {
            new[*page as usize * PAGE + at * 131] ^= 0x5A;
        }
    }
    let time = |what: &str, rounds: u32, work: &mut dyn FnMut()| {
        work();
        let start = std::time::Instant::now();
        (0..rounds).for_each(|_| work());
        println!("{what}: {:.1} µs", start.elapsed().as_secs_f64() * 1e6 / f64::from(rounds));
    };
    time("image of 9.4 MB", 10, &mut || drop(house.base(&old)));
    let base = house.base(&old);
    let changes: Vec<Change<'_>> = touched
        .iter()
        .map(|page| Change { page: *page, old: page_of(&old, *page), new: page_of(&new, *page) })
        .collect();
    let written = || changes.iter().map(|change| (change.page, change.new));
    let next = base.with_changes(written(), 2304).unwrap();
    time("next image, 12 pages", 1000, &mut || drop(base.with_changes(written(), 2304).unwrap()));
    let object = house.codec.encode(&base, &next, &changes).unwrap();
    println!("object: {} bytes", object.len());
    time("encode", 1000, &mut || drop(house.codec.encode(&base, &next, &changes).unwrap()));
    time("frame", 1000, &mut || assert!(Frame::read(&object).is_ok()));
    let key = next.key();
    time("decode", 1000, &mut || {
        let frame = Frame::read_as(key, &object).unwrap();
        drop(decoded(&mut house.codec, &frame, &base, &old).unwrap());
    });
    let empty = house.base(&vec![0; 16 * PAGE]);
    let (all, whole) = house.step(&empty, &vec![0; 16 * PAGE], &old);
    println!("whole: {} bytes", whole.len());
    time("whole, unpacked and verified", 10, &mut || {
        let mut memory = Vec::new();
        house.codec.apply(all.key(), &whole, &empty, &mut memory).unwrap();
    });
}
