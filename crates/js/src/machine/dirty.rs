//! Which pages of a memory were written since an image was mapped under it.
//! Invariant: never too few. A page that is named may be the same after all; one that is not named is the image's own.
//!
//! A page of a private mapping that was written is anonymous, one that was only read still belongs to the file. The kernel
//! says which: by one call for the whole range, or by eight bytes for each page; else every page is to be compared.
#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

use crate::image::PAGE;

use super::memory::{Ground, View};

/// How written pages are found here. Chosen once, by trying.
#[derive(Debug)]
pub struct Dirty {
    way: Way,
    pagemap: Option<File>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Scan,
    Pagemap,
    Every,
}

/// `struct pm_scan_arg` of the kernel.
#[repr(C)]
#[derive(Default)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    regions: u64,
    regions_length: u64,
    max_pages: u64,
    inverted: u64,
    all_of: u64,
    any_of: u64,
    returned: u64,
}

/// `struct page_region` of the kernel.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Found {
    start: u64,
    end: u64,
    categories: u64,
}

const PAGEMAP_SCAN: libc::c_ulong = 0xc060_6610;
const IS_FILE: u64 = 1 << 2;
const IS_PRESENT: u64 = 1 << 3;
const IS_SWAPPED: u64 = 1 << 4;
const REGIONS: usize = 256;

impl Dirty {
    pub fn here() -> &'static Self {
        static HERE: OnceLock<Dirty> = OnceLock::new();
        HERE.get_or_init(|| {
            for way in [Way::Scan, Way::Pagemap] {
                let dirty = Self { way, pagemap: File::open("/proc/self/pagemap").ok() };
                if dirty.works() == Some(true) {
                    return dirty;
                }
            }
            Self { way: Way::Every, pagemap: None }
        })
    }

    /// Whether it is found without looking at every page.
    pub fn is_exact(&self) -> bool {
        self.way != Way::Every
    }

    /// Into `pages`, in rising order, the pages of `memory` that may have been written.
    pub fn pages(&self, memory: &[u8], pages: &mut Vec<u32>) {
        pages.clear();
        let found = match self.way {
            Way::Scan => self.scan(memory, pages),
            Way::Pagemap => self.pagemap(memory, pages),
            Way::Every => None,
        };
        if found.is_none() {
            pages.clear();
            pages.extend(0..(memory.len() / PAGE) as u32);
        }
    }

    fn scan(&self, memory: &[u8], pages: &mut Vec<u32>) -> Option<()> {
        let pagemap = self.pagemap.as_ref()?;
        let first = memory.as_ptr() as u64;
        let end = first + memory.len() as u64;
        let mut regions = [Found::default(); REGIONS];
        let mut start = first;
        while start < end {
            let mut scan = Scan {
                size: size_of::<Scan>() as u64,
                start,
                end,
                regions: regions.as_mut_ptr() as u64,
                regions_length: REGIONS as u64,
                inverted: IS_FILE,
                all_of: IS_FILE,
                any_of: IS_PRESENT | IS_SWAPPED,
                returned: IS_PRESENT,
                ..Scan::default()
            };
            // SAFETY: the argument is the kernel's own struct; it writes at most `regions_length` entries to `regions`, and
            // only reads about the memory range.
            let count = unsafe { libc::ioctl(pagemap.as_raw_fd(), PAGEMAP_SCAN, &raw mut scan) };
            let count = usize::try_from(count).ok()?;
            for found in regions.get(..count)? {
                let from = found.start.checked_sub(first)? / PAGE as u64;
                let to = found.end.checked_sub(first)? / PAGE as u64;
                pages.extend((from..to).map(|page| page as u32));
            }
            if scan.walk_end <= start {
                return None;
            }
            start = scan.walk_end;
        }
        Some(())
    }

    fn pagemap(&self, memory: &[u8], pages: &mut Vec<u32>) -> Option<()> {
        const FILE: u64 = 1 << 61;
        const THERE: u64 = 1 << 63 | 1 << 62;
        let pagemap = self.pagemap.as_ref()?;
        let first = memory.as_ptr() as u64 / PAGE as u64;
        let mut entries = vec![0; memory.len() / PAGE * 8];
        pagemap.read_exact_at(&mut entries, first * 8).ok()?;
        let entries = entries.chunks_exact(8).map(|entry| entry.try_into().map_or(u64::MAX, u64::from_ne_bytes));
        pages.extend(
            (0..).zip(entries).filter(|(_, entry)| entry & THERE != 0 && entry & FILE == 0).map(|(page, _)| page),
        );
        Some(())
    }

    /// Writes to two pages of eight and reads two more, half of them beyond the image.
    fn works(&self) -> Option<bool> {
        let content = [7; PAGE];
        let ground = Ground::make(4 * PAGE, (0..4).map(|page| (page, content.as_slice()))).ok()?;
        let mut trial = Trial::new(8 * PAGE)?;
        let mut view = View(trial.bytes());
        view.stand_on(&ground).ok()?;
        let read = u32::from(*view.page(2)?.first()?) + u32::from(*view.page(5)?.first()?);
        for page in [1, 6] {
            view.page_mut(page)?[9] = read as u8;
        }
        let mut pages = Vec::new();
        match self.way {
            Way::Scan => self.scan(view.0, &mut pages)?,
            Way::Pagemap => self.pagemap(view.0, &mut pages)?,
            Way::Every => return Some(true),
        }
        let exact = !pages.contains(&0) && !pages.contains(&2) && !pages.contains(&3);
        Some(exact && pages.contains(&1) && pages.contains(&6))
    }
}

/// Some memory to try on.
struct Trial(*mut u8, usize);

impl Trial {
    fn new(bytes: usize) -> Option<Self> {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, rights, flags, -1, 0) };
        (start != libc::MAP_FAILED).then(|| Self(start.cast(), bytes))
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the mapping has so many bytes, is readable and writable, and borrowed from its only owner.
        unsafe { std::slice::from_raw_parts_mut(self.0, self.1) }
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `new` and is referred to by nobody.
        unsafe { libc::munmap(self.0.cast(), self.1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_finds_what_was_written() {
        for way in [Way::Scan, Way::Pagemap, Way::Every] {
            let dirty = Dirty { way, pagemap: File::open("/proc/self/pagemap").ok() };
            let mut trial = Trial::new(16 * PAGE).unwrap();
            let content = [7; PAGE];
            let ground = Ground::make(8 * PAGE, (0..8).map(|page| (page, content.as_slice()))).unwrap();
            let mut view = View(trial.bytes());
            view.stand_on(&ground).unwrap();
            for page in [3, 12] {
                view.page_mut(page).unwrap()[100] = 1;
            }
            let mut pages = vec![99];
            dirty.pages(view.0, &mut pages);
            assert!(pages.contains(&3) && pages.contains(&12), "{way:?}: {pages:?}");
            assert!(pages.is_sorted() && pages.iter().all(|page| *page < 16), "{way:?}: {pages:?}");
            assert_eq!(ground.page(3).unwrap(), content, "the image itself is written by nobody");
        }
    }
}
