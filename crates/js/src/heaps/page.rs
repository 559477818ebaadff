//! Pages that heaps share, and the count of the bytes they take.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::image::{PAGE, ZERO_PAGE};

/// How many bytes all heaps of an engine take together.
#[derive(Debug, Default)]
pub struct Ledger(AtomicUsize);

impl Ledger {
    pub fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    pub fn take(self: &Arc<Self>, bytes: usize) -> Entry {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        Entry { ledger: self.clone(), bytes }
    }
}

/// Bytes that are counted as long as this lives.
#[derive(Debug)]
pub struct Entry {
    ledger: Arc<Ledger>,
    bytes: usize,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.ledger.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

pub struct Page {
    bytes: Box<[u8; PAGE]>,
    _counted: Entry,
}

impl Page {
    pub fn new(ledger: &Arc<Ledger>, bytes: Box<[u8; PAGE]>) -> Arc<Self> {
        Arc::new(Self { bytes, _counted: ledger.take(PAGE) })
    }

    /// A copy; what a short one lacks is zero.
    pub fn copy(ledger: &Arc<Ledger>, content: &[u8]) -> Arc<Self> {
        let bytes = Box::<[u8]>::from(content).try_into().unwrap_or_else(|short: Box<[u8]>| {
            let mut bytes = Box::new(ZERO_PAGE);
            let length = short.len().min(PAGE);
            bytes[..length].copy_from_slice(&short[..length]);
            bytes
        });
        Self::new(ledger, bytes)
    }

    pub fn bytes(&self) -> &[u8] {
        self.bytes.as_slice()
    }
}
