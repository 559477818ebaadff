//! Boots engines, each once per process: compiles the guest, makes the base image, and computes the engine's name.
//! Invariant: the name covers the guest and the image that it boots to, so engines with equal names make equal heaps.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, PoisonError, RwLock};

use base::Digest;

use crate::heaps::{LoadedHeap, PagePool};
use crate::image::{self, Image, PAGE_BYTES};
use crate::machine::{Guest, GuestMemoryCreator, LinkedModule};
use crate::program::{self, CodeCache, GuestParts};

use super::Settings;
use super::ticker::Ticker;

/// Why an engine cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the system has no threads or memory for the JavaScript engine")]
    Io(#[from] io::Error),
    #[error("the JavaScript engine cannot be used")]
    Guest(#[from] program::Error),
    #[error("the first image of the JavaScript engine cannot be made")]
    Image(#[from] image::Error),
    #[error("WebAssembly cannot run here")]
    Wasmtime(#[source] wasmtime::Error),
}

/// An engine that guests can be made of.
pub struct BootedEngine {
    pub name: Digest,
    /// The bytes of the guest, to be stored beside its heaps.
    pub guest: Arc<[u8]>,
    pub module: LinkedModule,
    /// The pages of the stack, at the beginning of the memory. They are zero whenever an image is made.
    pub stack_pages: u32,
    /// The heap that every new script starts from.
    pub base: Arc<LoadedHeap>,
}

/// All engines of this process: that of this build, and older ones that heaps still need.
pub struct BootedEngines {
    wasmtime: wasmtime::Engine,
    code_cache: CodeCache,
    pub ticker: Ticker,
    by_name: RwLock<HashMap<Digest, Arc<BootedEngine>>>,
}

impl BootedEngines {
    pub fn new(settings: &Settings) -> Result<Self, StartError> {
        let config = program::config(Arc::new(GuestMemoryCreator));
        let wasmtime = wasmtime::Engine::new(&config).map_err(StartError::Wasmtime)?;
        let ticker = Ticker::start(wasmtime.clone())?;
        let code_cache = CodeCache::open(settings.code_cache.as_deref());
        Ok(Self { wasmtime, code_cache, ticker, by_name: RwLock::default() })
    }

    pub fn get(&self, name: &Digest) -> Option<Arc<BootedEngine>> {
        self.by_name.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Boots a guest. If the same engine was booted before, that one is returned.
    pub fn boot(&self, guest: &[u8], pool: &Arc<PagePool>) -> Result<Arc<BootedEngine>, StartError> {
        let parts = GuestParts::read(guest)?;
        let guest_digest = Digest::of(guest);
        let module = self.code_cache.module(&self.wasmtime, guest_digest, &parts)?;
        let module = LinkedModule::new(&self.wasmtime, &module).map_err(program::Error::Compile)?;
        let stack_pages = parts.stack_bytes.div_ceil(PAGE_BYTES as u32);
        let _tick_guard = self.ticker.keep_ticking();
        let boot_error = |error| program::Error::Boot(wasmtime::Error::new(error));
        let mut instance = Guest::instantiate(&module).map_err(boot_error)?;
        instance.boot(&parts)?;
        let view = instance.view();
        let stack = view.0.get_mut(..stack_pages as usize * PAGE_BYTES);
        stack.ok_or(program::Error::Shape("its stack is larger than its memory"))?.fill(0);
        // A key contains the engine's name, and the name contains the key of the image. The first image therefore has
        // the digest of the guest in place of the name, and the image is made again under the name.
        let unnamed = Image::base(guest_digest, view.0)?;
        let name = Digest::of(format!("tokamak engine\n{guest_digest}\n{}\n", unnamed.key()).as_bytes());
        let base = Arc::new(LoadedHeap::base(pool, Image::base(name, view.0)?, view.0)?);
        let engine = Arc::new(BootedEngine { name, guest: guest.into(), module, stack_pages, base });
        // Heaps refer to the base of the engine that they were made by, so an engine that is there is never replaced.
        let mut by_name = self.by_name.write().unwrap_or_else(PoisonError::into_inner);
        Ok(by_name.entry(name).or_insert(engine).clone())
    }
}
