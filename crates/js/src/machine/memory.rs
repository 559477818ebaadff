//! Memory of a guest: a reserved piece of address space, and an image mapped over its beginning, copy-on-write.
//! Invariant: a [`Ground`] never changes once it is made, so any number of instances may stand on it.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, IoSlice, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::ptr::{self, NonNull};

use wasmtime::{LinearMemory, MemoryCreator, MemoryType};

use crate::image::PAGE;

/// Wasmtime's trait has no other error.
type Words = String;

/// Makes the memory of new instances.
pub struct Regions;

/// One guest's address space. Everything in it is unreadable until it is grown into or mapped.
struct Region {
    start: NonNull<u8>,
    /// Of the memory, without the guard after it.
    capacity: usize,
    reserved: usize,
    size: usize,
}

// SAFETY: the region is owned by this value alone; Wasmtime gives out its pointer only to the instance it belongs to.
unsafe impl Send for Region {}
// SAFETY: no method changes anything through a shared reference.
unsafe impl Sync for Region {}

// SAFETY: `new_memory` gives zeroed memory of the size asked for, which never moves, with the guard left unmapped after it.
unsafe impl MemoryCreator for Regions {
    fn new_memory(
        &self,
        _: MemoryType,
        minimum: usize,
        maximum: Option<usize>,
        reserved: Option<usize>,
        guard: usize,
    ) -> Result<Box<dyn LinearMemory>, Words> {
        let capacity = reserved.unwrap_or_else(|| maximum.unwrap_or(minimum));
        let region = Region::reserve(capacity, guard).and_then(|mut region| {
            region.open(minimum)?;
            Ok(region)
        });
        match region {
            Ok(region) => Ok(Box::new(region)),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Region {
    fn reserve(capacity: usize, guard: usize) -> io::Result<Self> {
        let reserved = capacity.checked_add(guard).ok_or(io::ErrorKind::InvalidInput)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let start = unsafe { libc::mmap(ptr::null_mut(), reserved, libc::PROT_NONE, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the range is the mapping just made. Without this, one write may cost 2 MiB.
        unsafe { libc::madvise(start, capacity, libc::MADV_NOHUGEPAGE) };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, capacity, reserved, size: 0 })
    }

    fn open(&mut self, size: usize) -> io::Result<()> {
        if size > self.capacity || size < self.size {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        if size > self.size {
            // SAFETY: the range lies in this region, checked above.
            let done = unsafe {
                let from = self.start.as_ptr().add(self.size);
                libc::mprotect(from.cast(), size - self.size, libc::PROT_READ | libc::PROT_WRITE)
            };
            if done != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        self.size = size;
        Ok(())
    }
}

// SAFETY: the pointer is to `capacity` bytes, of which `byte_size` are accessible, and stays the same.
unsafe impl LinearMemory for Region {
    fn byte_size(&self) -> usize {
        self.size
    }

    fn byte_capacity(&self) -> usize {
        self.capacity
    }

    fn grow_to(&mut self, size: usize) -> wasmtime::Result<()> {
        Ok(self.open(size)?)
    }

    fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the range is the mapping that `reserve` made, and nothing refers to it after its owner is gone.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.reserved) };
    }
}

/// A whole memory in a file without a name, to be mapped under instances and read from here.
pub struct Ground {
    file: File,
    view: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping is read-only and its file never written again.
unsafe impl Send for Ground {}
// SAFETY: as above.
unsafe impl Sync for Ground {}

/// A ground in the making: all zero, but for what was laid.
pub struct Laying {
    file: File,
    bytes: usize,
}

impl Laying {
    pub fn new(bytes: usize) -> io::Result<Self> {
        // SAFETY: the name is a C string; the answer is checked.
        let made = unsafe { libc::memfd_create(c"tokamak-heap".as_ptr(), libc::MFD_CLOEXEC) };
        if made < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and owned by nobody else.
        let file = unsafe { File::from_raw_fd(made) };
        file.set_len(bytes as u64)?;
        Ok(Self { file, bytes })
    }

    /// Pages in rising order.
    pub fn fill<'a>(&self, pages: impl Iterator<Item = (u32, &'a [u8])>) -> io::Result<()> {
        write(&self.file, pages)
    }

    /// Pages that follow each other.
    pub fn put(&self, first: u32, pages: &[u8]) -> io::Result<()> {
        self.file.write_all_at(pages, u64::from(first) * PAGE as u64)
    }

    pub fn done(self) -> io::Result<Ground> {
        let Self { file, bytes } = self;
        // SAFETY: a new mapping of our own file, at an address of the kernel's choice.
        let view =
            unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if view == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let view = NonNull::new(view.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Ground { file, view, bytes })
    }
}

impl Ground {
    /// Holds `bytes` of memory, of which `pages` gives those that are not all zero.
    pub fn make<'a>(bytes: usize, pages: impl Iterator<Item = (u32, &'a [u8])>) -> io::Result<Self> {
        let laying = Laying::new(bytes)?;
        laying.fill(pages)?;
        laying.done()
    }

    pub fn page(&self, page: u32) -> Option<&[u8]> {
        let at = page as usize * PAGE;
        if at + PAGE > self.bytes {
            return None;
        }
        // SAFETY: the range lies in the mapping, which lives as long as `self` and is never written.
        Some(unsafe { std::slice::from_raw_parts(self.view.as_ptr().add(at), PAGE) })
    }
}

/// Pages that follow each other are written together: a call for each would cost as much as the copying.
fn write<'a>(mut file: &File, pages: impl Iterator<Item = (u32, &'a [u8])>) -> io::Result<()> {
    const TOGETHER: usize = 256;
    let mut row: Vec<&[u8]> = Vec::with_capacity(TOGETHER);
    let mut first = 0;
    let mut pages = pages.peekable();
    while let Some((page, content)) = pages.next() {
        if row.is_empty() {
            first = page;
        }
        row.push(content);
        let goes_on = pages.peek().is_some_and(|(next, _)| *next == page + 1);
        if goes_on && row.len() < TOGETHER {
            continue;
        }
        file.seek(SeekFrom::Start(u64::from(first) * PAGE as u64))?;
        let mut slices: Vec<IoSlice<'_>> = row.iter().map(|page| IoSlice::new(page)).collect();
        let mut left = slices.as_mut_slice();
        while !left.is_empty() {
            let written = file.write_vectored(left)?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            IoSlice::advance_slices(&mut left, written);
        }
        row.clear();
    }
    Ok(())
}

impl Drop for Ground {
    fn drop(&mut self) {
        // SAFETY: the range is the mapping made in `Laying::done`; slices of it cannot outlive `self`.
        unsafe { libc::munmap(self.view.as_ptr().cast(), self.bytes) };
    }
}

/// The memory of an instance that is not running, as Wasmtime shows it.
pub struct View<'a>(pub &'a mut [u8]);

impl View<'_> {
    /// Puts the ground under the beginning of the memory; what was there is gone.
    pub fn stand_on(&mut self, ground: &Ground) -> io::Result<()> {
        if ground.bytes > self.0.len() || !ground.bytes.is_multiple_of(PAGE) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let flags = libc::MAP_PRIVATE | libc::MAP_FIXED | libc::MAP_NORESERVE;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the range lies in a `Region` of ours (every memory is one), which we hold exclusively and which is aligned
        // to pages; plain bytes replace plain bytes.
        let mapped =
            unsafe { libc::mmap(self.0.as_mut_ptr().cast(), ground.bytes, rights, flags, ground.file.as_raw_fd(), 0) };
        if mapped == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    pub fn page(&self, page: u32) -> Option<&[u8]> {
        let at = page as usize * PAGE;
        self.0.get(at..at + PAGE)
    }

    pub fn page_mut(&mut self, page: u32) -> Option<&mut [u8]> {
        let at = page as usize * PAGE;
        self.0.get_mut(at..at + PAGE)
    }
}
