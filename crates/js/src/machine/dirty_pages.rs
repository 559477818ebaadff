//! Finds the pages of a guest's memory that were written since a memory file was mapped into that memory.
//! Invariant: every written page is listed. A listed page may still equal the memory file. A page that is not listed
//! equals the memory file.
//!
//! A page of a private mapping becomes anonymous when it is written. A page that was only read still belongs to the
//! file. The kernel reports the difference by one ioctl for the whole range (`PAGEMAP_SCAN`), or by eight bytes for
//! each page in `/proc/self/pagemap`. If neither method works, all pages are listed and the caller compares them.
#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

use crate::image::PAGE_BYTES;

use super::memory::{MemoryFile, MemoryView};

/// Lists written pages by the best method that the kernel of this machine supports. The method is chosen once for each
/// process, by a test.
#[derive(Debug)]
pub struct DirtyPageFinder {
    method: FindMethod,
    pagemap: Option<File>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FindMethod {
    /// Calls the ioctl `PAGEMAP_SCAN`, which exists since Linux 6.7.
    PagemapScan,
    /// Reads the entries of `/proc/self/pagemap`.
    PagemapEntries,
    /// Lists all pages, because the kernel reports nothing.
    AllPages,
}

/// The argument of the ioctl `PAGEMAP_SCAN`, with the layout of the kernel's `struct pm_scan_arg`.
#[repr(C)]
#[derive(Default)]
struct ScanArgument {
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

/// A range of pages that `PAGEMAP_SCAN` returns, with the layout of the kernel's `struct page_region`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct PageRegion {
    start: u64,
    end: u64,
    categories: u64,
}

const PAGEMAP_SCAN: libc::c_ulong = 0xc060_6610;
const PAGE_IS_FILE: u64 = 1 << 2;
const PAGE_IS_PRESENT: u64 = 1 << 3;
const PAGE_IS_SWAPPED: u64 = 1 << 4;
/// The number of regions that one call of the ioctl can return.
const MAX_REGIONS_PER_SCAN: usize = 256;

impl DirtyPageFinder {
    /// Returns the finder of this process.
    pub fn get() -> &'static Self {
        static FINDER: OnceLock<DirtyPageFinder> = OnceLock::new();
        FINDER.get_or_init(|| {
            for method in [FindMethod::PagemapScan, FindMethod::PagemapEntries] {
                let finder = Self { method, pagemap: File::open("/proc/self/pagemap").ok() };
                if finder.works() == Some(true) {
                    return finder;
                }
            }
            Self { method: FindMethod::AllPages, pagemap: None }
        })
    }

    /// Returns whether the kernel reports which pages were written. If it does not, the caller must compare all pages.
    pub fn is_exact(&self) -> bool {
        self.method != FindMethod::AllPages
    }

    /// Replaces `pages` by the pages of `memory` that may have been written, in rising order.
    pub fn find(&self, memory: &[u8], pages: &mut Vec<u32>) {
        pages.clear();
        let complete = match self.method {
            FindMethod::PagemapScan => self.scan(memory, pages),
            FindMethod::PagemapEntries => self.read_entries(memory, pages),
            FindMethod::AllPages => None,
        };
        // If the method fails for this memory, all pages are listed, so that no written page is missed.
        if complete.is_none() {
            pages.clear();
            pages.extend(0..(memory.len() / PAGE_BYTES) as u32);
        }
    }

    fn scan(&self, memory: &[u8], pages: &mut Vec<u32>) -> Option<()> {
        let pagemap = self.pagemap.as_ref()?;
        let memory_start = memory.as_ptr() as u64;
        let memory_end = memory_start + memory.len() as u64;
        let mut regions = [PageRegion::default(); MAX_REGIONS_PER_SCAN];
        let mut start = memory_start;
        while start < memory_end {
            // The filter selects pages that do not belong to a file (`inverted` negates the condition `all_of`) and
            // that are in memory or swapped out.
            let mut argument = ScanArgument {
                size: size_of::<ScanArgument>() as u64,
                start,
                end: memory_end,
                regions: regions.as_mut_ptr() as u64,
                regions_length: MAX_REGIONS_PER_SCAN as u64,
                inverted: PAGE_IS_FILE,
                all_of: PAGE_IS_FILE,
                any_of: PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
                returned: PAGE_IS_PRESENT,
                ..ScanArgument::default()
            };
            // SAFETY: the argument has the kernel's layout. The kernel writes at most `regions_length` entries to
            // `regions`, and only reads the state of the memory range.
            let count = unsafe { libc::ioctl(pagemap.as_raw_fd(), PAGEMAP_SCAN, &raw mut argument) };
            let count = usize::try_from(count).ok()?;
            for region in regions.get(..count)? {
                let first_page = region.start.checked_sub(memory_start)? / PAGE_BYTES as u64;
                let end_page = region.end.checked_sub(memory_start)? / PAGE_BYTES as u64;
                pages.extend((first_page..end_page).map(|page| page as u32));
            }
            // If the kernel made no progress, the loop would never end.
            if argument.walk_end <= start {
                return None;
            }
            start = argument.walk_end;
        }
        Some(())
    }

    fn read_entries(&self, memory: &[u8], pages: &mut Vec<u32>) -> Option<()> {
        const OF_FILE: u64 = 1 << 61;
        const PRESENT_OR_SWAPPED: u64 = 1 << 63 | 1 << 62;
        let pagemap = self.pagemap.as_ref()?;
        let first_entry = memory.as_ptr() as u64 / PAGE_BYTES as u64;
        let mut entries = vec![0; memory.len() / PAGE_BYTES * 8];
        pagemap.read_exact_at(&mut entries, first_entry * 8).ok()?;
        let entries = entries.chunks_exact(8).map(|entry| entry.try_into().map_or(u64::MAX, u64::from_ne_bytes));
        let is_written = |entry: u64| entry & PRESENT_OR_SWAPPED != 0 && entry & OF_FILE == 0;
        pages.extend((0..).zip(entries).filter(|(_, entry)| is_written(*entry)).map(|(page, _)| page));
        Some(())
    }

    /// Returns whether the method works on this machine. The test maps a file over the first four of eight pages. It
    /// then writes one page and reads one page in each half.
    fn works(&self) -> Option<bool> {
        let content = [7; PAGE_BYTES];
        let file = MemoryFile::create(4 * PAGE_BYTES, (0..4).map(|page| (page, content.as_slice()))).ok()?;
        let mut mapping = TestMapping::new(8 * PAGE_BYTES)?;
        let mut view = MemoryView(mapping.bytes());
        view.map(&file).ok()?;
        let read = u32::from(*view.page(2)?.first()?) + u32::from(*view.page(5)?.first()?);
        for page in [1, 6] {
            // The value `read` is written here, so that the compiler does not remove the reads.
            view.page_mut(page)?[9] = read as u8;
        }
        let mut pages = Vec::new();
        match self.method {
            FindMethod::PagemapScan => self.scan(view.0, &mut pages)?,
            FindMethod::PagemapEntries => self.read_entries(view.0, &mut pages)?,
            FindMethod::AllPages => return Some(true),
        }
        let lists_unwritten = [0, 2, 3].iter().any(|page| pages.contains(page));
        Some(!lists_unwritten && pages.contains(&1) && pages.contains(&6))
    }
}

/// A mapping of anonymous memory on which the methods are tested.
struct TestMapping {
    start: *mut u8,
    length: usize,
}

impl TestMapping {
    fn new(length: usize) -> Option<Self> {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: this creates a new mapping at an address that the kernel chooses, so it touches no existing memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, rights, flags, -1, 0) };
        (start != libc::MAP_FAILED).then(|| Self { start: start.cast(), length })
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the mapping has `length` bytes, is readable and writable, and is borrowed exclusively from its only
        // owner.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.length) }
    }
}

impl Drop for TestMapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was created in `new`, and no reference to it outlives its owner.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_lists_the_written_pages() {
        for method in [FindMethod::PagemapScan, FindMethod::PagemapEntries, FindMethod::AllPages] {
            let finder = DirtyPageFinder { method, pagemap: File::open("/proc/self/pagemap").ok() };
            let mut mapping = TestMapping::new(16 * PAGE_BYTES).unwrap();
            let content = [7; PAGE_BYTES];
            let file = MemoryFile::create(8 * PAGE_BYTES, (0..8).map(|page| (page, content.as_slice()))).unwrap();
            let mut view = MemoryView(mapping.bytes());
            view.map(&file).unwrap();
            for page in [3, 12] {
                view.page_mut(page).unwrap()[100] = 1;
            }
            let mut pages = vec![99];
            finder.find(view.0, &mut pages);
            assert!(pages.contains(&3) && pages.contains(&12), "{method:?}: {pages:?}");
            assert!(pages.is_sorted() && pages.iter().all(|page| *page < 16), "{method:?}: {pages:?}");
            assert_eq!(file.page(3).unwrap(), content, "the file itself is unchanged");
        }
    }
}
