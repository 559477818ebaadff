//! The memory of guests: reserved address space, and memory files that are mapped over its beginning, copy-on-write.
//! Invariant: a [`MemoryFile`] never changes after it was created, so any number of guests may map it.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, IoSlice, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::ptr::{self, NonNull};

use wasmtime::{LinearMemory, MemoryCreator, MemoryType};

use crate::image::PAGE_BYTES;

/// The error type that Wasmtime's trait requires.
type CreatorError = String;

/// The factory that Wasmtime calls to create the memory of each new guest.
pub struct GuestMemoryCreator;

/// The reserved address space of one guest. The part beyond `size` is inaccessible until the memory grows.
struct GuestMemory {
    start: NonNull<u8>,
    /// The largest size of the memory in bytes, without the guard. The guard is the inaccessible range after the
    /// memory.
    capacity: usize,
    /// The length of the whole mapping in bytes, including the guard.
    reserved: usize,
    /// The current size of the memory in bytes.
    size: usize,
}

// SAFETY: this value alone owns the mapping. Wasmtime gives the pointer only to the instance that the memory belongs
// to.
unsafe impl Send for GuestMemory {}
// SAFETY: no method changes anything through a shared reference.
unsafe impl Sync for GuestMemory {}

// SAFETY: `new_memory` returns zeroed memory of the requested size that never moves. The guard after it is never made
// accessible.
unsafe impl MemoryCreator for GuestMemoryCreator {
    fn new_memory(
        &self,
        _: MemoryType,
        minimum: usize,
        maximum: Option<usize>,
        reserved: Option<usize>,
        guard: usize,
    ) -> Result<Box<dyn LinearMemory>, CreatorError> {
        let capacity = reserved.unwrap_or_else(|| maximum.unwrap_or(minimum));
        let memory = GuestMemory::reserve(capacity, guard).and_then(|mut memory| {
            memory.make_accessible(minimum)?;
            Ok(memory)
        });
        match memory {
            Ok(memory) => Ok(Box::new(memory)),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl GuestMemory {
    fn reserve(capacity: usize, guard: usize) -> io::Result<Self> {
        let reserved = capacity.checked_add(guard).ok_or(io::ErrorKind::InvalidInput)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: this creates a new mapping at an address that the kernel chooses, so it touches no existing memory.
        let start = unsafe { libc::mmap(ptr::null_mut(), reserved, libc::PROT_NONE, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // Huge pages are switched off: with them, one written byte could use 2 MiB of memory. SAFETY: the range lies in
        // the mapping that was just created.
        unsafe { libc::madvise(start, capacity, libc::MADV_NOHUGEPAGE) };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, capacity, reserved, size: 0 })
    }

    /// Grows the memory to `size` bytes.
    fn make_accessible(&mut self, size: usize) -> io::Result<()> {
        if size > self.capacity || size < self.size {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        if size > self.size {
            // SAFETY: the range from `self.size` to `size` lies in this mapping, as was checked above.
            let result = unsafe {
                let from = self.start.as_ptr().add(self.size);
                libc::mprotect(from.cast(), size - self.size, libc::PROT_READ | libc::PROT_WRITE)
            };
            if result != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        self.size = size;
        Ok(())
    }
}

// SAFETY: the pointer points to `capacity` bytes, of which `byte_size` are accessible, and never changes.
unsafe impl LinearMemory for GuestMemory {
    fn byte_size(&self) -> usize {
        self.size
    }

    fn byte_capacity(&self) -> usize {
        self.capacity
    }

    fn grow_to(&mut self, size: usize) -> wasmtime::Result<()> {
        Ok(self.make_accessible(size)?)
    }

    fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for GuestMemory {
    fn drop(&mut self) {
        // SAFETY: the range is the mapping that `reserve` created, and no reference to it outlives its owner.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.reserved) };
    }
}

/// An anonymous file that contains the complete memory of a heap. Guests map the file copy-on-write, and the host reads
/// it through a read-only mapping.
pub struct MemoryFile {
    file: File,
    /// The start of the host's read-only mapping of the file.
    mapping: NonNull<u8>,
    /// The length of the file and of its mapping in bytes.
    bytes: usize,
}

// SAFETY: the mapping is read-only, and the file is never written again.
unsafe impl Send for MemoryFile {}
// SAFETY: the mapping is read-only, and the file is never written again.
unsafe impl Sync for MemoryFile {}

impl MemoryFile {
    /// Creates a memory file of `bytes` bytes. `pages` yields the pages that are not zero, in rising order.
    pub fn create<'a>(bytes: usize, pages: impl Iterator<Item = (u32, &'a [u8])>) -> io::Result<Self> {
        let writer = MemoryFileWriter::new(bytes)?;
        writer.write_pages(pages)?;
        writer.finish()
    }

    pub fn page(&self, page: u32) -> Option<&[u8]> {
        let at = page as usize * PAGE_BYTES;
        if at + PAGE_BYTES > self.bytes {
            return None;
        }
        // SAFETY: the range lies in the mapping, which lives as long as `self` and is never written.
        Some(unsafe { std::slice::from_raw_parts(self.mapping.as_ptr().add(at), PAGE_BYTES) })
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        // SAFETY: the range is the mapping that `MemoryFileWriter::finish` created. Slices of it cannot outlive `self`.
        unsafe { libc::munmap(self.mapping.as_ptr().cast(), self.bytes) };
    }
}

/// A memory file that is being written. Pages that are never written are zero and use no memory.
pub struct MemoryFileWriter {
    file: File,
    bytes: usize,
}

impl MemoryFileWriter {
    pub fn new(bytes: usize) -> io::Result<Self> {
        // SAFETY: the name is a C string, and the result is checked.
        let descriptor = unsafe { libc::memfd_create(c"tokamak-heap".as_ptr(), libc::MFD_CLOEXEC) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new, so nothing else owns it.
        let file = unsafe { File::from_raw_fd(descriptor) };
        file.set_len(bytes as u64)?;
        Ok(Self { file, bytes })
    }

    /// Writes consecutive pages that begin at page `first`. It may be called from several threads.
    pub fn write_run(&self, first: u32, pages: &[u8]) -> io::Result<()> {
        self.file.write_all_at(pages, u64::from(first) * PAGE_BYTES as u64)
    }

    /// Writes pages in rising order. Consecutive pages are written by one system call, because a system call for each
    /// page would cost as much as copying the page.
    pub fn write_pages<'a>(&self, pages: impl Iterator<Item = (u32, &'a [u8])>) -> io::Result<()> {
        const MAX_RUN_PAGES: usize = 256;
        let mut run: Vec<&[u8]> = Vec::with_capacity(MAX_RUN_PAGES);
        let mut first = 0;
        let mut pages = pages.peekable();
        while let Some((page, content)) = pages.next() {
            if run.is_empty() {
                first = page;
            }
            run.push(content);
            let is_continued = pages.peek().is_some_and(|(next, _)| *next == page + 1);
            if is_continued && run.len() < MAX_RUN_PAGES {
                continue;
            }
            self.write_slices(first, &run)?;
            run.clear();
        }
        Ok(())
    }

    fn write_slices(&self, first: u32, run: &[&[u8]]) -> io::Result<()> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(u64::from(first) * PAGE_BYTES as u64))?;
        let mut slices: Vec<IoSlice<'_>> = run.iter().map(|page| IoSlice::new(page)).collect();
        let mut unwritten = slices.as_mut_slice();
        while !unwritten.is_empty() {
            let written = file.write_vectored(unwritten)?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            IoSlice::advance_slices(&mut unwritten, written);
        }
        Ok(())
    }

    pub fn finish(self) -> io::Result<MemoryFile> {
        let Self { file, bytes } = self;
        // SAFETY: this creates a new mapping of our own file, at an address that the kernel chooses.
        let mapping =
            unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if mapping == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mapping = NonNull::new(mapping.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(MemoryFile { file, mapping, bytes })
    }
}

/// Access to the memory of a guest that is not running. The view borrows the guest, so the guest cannot run while the
/// view exists.
pub struct MemoryView<'a>(pub &'a mut [u8]);

impl MemoryView<'_> {
    /// Maps the file over the beginning of the memory, copy-on-write. The earlier content of that range is lost.
    pub fn map(&mut self, source: &MemoryFile) -> io::Result<()> {
        if source.bytes > self.0.len() || !source.bytes.is_multiple_of(PAGE_BYTES) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // MAP_PRIVATE gives the guest its own copy of each page that it writes. The file stays unchanged for all other
        // guests.
        let flags = libc::MAP_PRIVATE | libc::MAP_FIXED | libc::MAP_NORESERVE;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the range lies in a mapping of ours (the memory of every guest is a `GuestMemory`) that is aligned to
        // pages and that `self` borrows exclusively. Plain bytes replace plain bytes.
        let mapped =
            unsafe { libc::mmap(self.0.as_mut_ptr().cast(), source.bytes, rights, flags, source.file.as_raw_fd(), 0) };
        if mapped == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    pub fn page(&self, page: u32) -> Option<&[u8]> {
        let at = page as usize * PAGE_BYTES;
        self.0.get(at..at + PAGE_BYTES)
    }

    pub fn page_mut(&mut self, page: u32) -> Option<&mut [u8]> {
        let at = page as usize * PAGE_BYTES;
        self.0.get_mut(at..at + PAGE_BYTES)
    }
}
