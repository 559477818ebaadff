//! Boots engines, each once per process. A boot compiles the guest, makes the base image and computes the engine's
//! name.
//! Invariant: the name of an engine is a digest of its guest and of its base image, so engines with equal names make
//! equal heaps.

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

/// The reason for which a JavaScript engine cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the system gives the JavaScript engine no threads or no memory; raise the limits of this process")]
    Io(#[from] io::Error),
    #[error("the guest of the JavaScript engine cannot be used")]
    Guest(#[from] program::Error),
    #[error("the base image of the JavaScript engine cannot be made")]
    Image(#[from] image::Error),
    #[error("the JavaScript engine cannot start, because Wasmtime does not run on this machine")]
    Wasmtime(#[source] wasmtime::Error),
}

/// A booted engine, of which guests can be created.
pub struct BootedEngine {
    pub name: Digest,
    /// The WebAssembly of the guest. The caller stores it together with the heaps of this engine, so that a later build
    /// can load them.
    pub guest: Arc<[u8]>,
    pub module: LinkedModule,
    /// The number of pages of the guest's stack, which is at the beginning of the memory. The stack pages are zero in
    /// every image.
    pub stack_pages: u32,
    /// The base image: the heap that every new session starts from.
    pub base: Arc<LoadedHeap>,
}

/// All booted engines of this process: the engine of this build, and engines of older builds that stored heaps need.
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

    /// Boots a guest and returns its engine. If the same engine was booted before, the existing engine is returned.
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
        stack.ok_or(program::Error::Shape("the stack of the guest is larger than its memory"))?.fill(0);
        // The key of an image depends on the engine's name, and the name depends on the key of the image. To break this
        // circle, a first image is made with the digest of the guest in place of the name. Its key gives the name, and
        // the image is made again with the name.
        let unnamed = Image::base(guest_digest, view.0)?;
        let name = Digest::of(format!("tokamak engine\n{guest_digest}\n{}\n", unnamed.key()).as_bytes());
        let base = Arc::new(LoadedHeap::base(pool, Image::base(name, view.0)?, view.0)?);
        let engine = Arc::new(BootedEngine { name, guest: guest.into(), module, stack_pages, base });
        // An existing engine is never replaced, because loaded heaps refer to its base image.
        let mut by_name = self.by_name.write().unwrap_or_else(PoisonError::into_inner);
        Ok(by_name.entry(name).or_insert(engine).clone())
    }
}
