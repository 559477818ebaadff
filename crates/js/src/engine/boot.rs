//! Engines, each booted once: its code compiled, its base image made, its name found.
//! Invariant: an engine's name is made of its guest and of the image it boots to, so equal names mean equal heaps.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, PoisonError, RwLock};

use base::Digest;

use crate::heaps::{Held, Ledger};
use crate::image::{self, Image, PAGE};
use crate::machine::{Instance, Linked, Regions};
use crate::program::{self, CodeCache, Parts};

use super::Settings;
use super::ticker::Ticker;

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the JavaScript engine has no room to run")]
    Io(#[from] io::Error),
    #[error("the JavaScript engine cannot be used")]
    Guest(#[from] program::Error),
    #[error("the JavaScript engine's first image cannot be made")]
    Image(#[from] image::Error),
    #[error("WebAssembly cannot be run here")]
    Wasmtime(#[source] wasmtime::Error),
}

pub struct Running {
    pub name: Digest,
    pub guest: Arc<[u8]>,
    pub linked: Linked,
    /// The memory that the stack takes, from its beginning. Empty whenever an image is made.
    pub stack_pages: u32,
    pub base: Arc<Held>,
}

pub struct Engines {
    wasmtime: wasmtime::Engine,
    code: CodeCache,
    pub ticker: Ticker,
    by_name: RwLock<HashMap<Digest, Arc<Running>>>,
}

impl Engines {
    pub fn new(settings: &Settings) -> Result<Self, StartError> {
        let wasmtime = wasmtime::Engine::new(&program::config(Arc::new(Regions))).map_err(StartError::Wasmtime)?;
        let ticker = Ticker::start(wasmtime.clone())?;
        Ok(Self { wasmtime, code: CodeCache::open(settings.code.as_deref()), ticker, by_name: RwLock::default() })
    }

    pub fn get(&self, name: &Digest) -> Option<Arc<Running>> {
        self.by_name.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Boots a guest; one that is here already stays the one that is here.
    pub fn boot(&self, guest: &[u8], ledger: &Arc<Ledger>) -> Result<Arc<Running>, StartError> {
        let parts = Parts::read(guest)?;
        let module = self.code.module(&self.wasmtime, Digest::of(guest), &parts)?;
        let linked = Linked::new(&self.wasmtime, &module).map_err(program::Error::Compile)?;
        let stack_pages = parts.stack_bytes.div_ceil(PAGE as u32);
        let boots = |cut| program::Error::Boot(wasmtime::Error::new(cut));
        let _ticking = self.ticker.running();
        let mut instance = Instance::start(&linked).map_err(boots)?;
        instance.boot(&parts)?;
        let view = instance.view();
        let stack =
            view.0.get_mut(..stack_pages as usize * PAGE).ok_or(program::Error::Shape("its stack has no room"))?;
        stack.fill(0);
        // The name is not known before the image is: its digests are taken twice, under no name and under this one.
        let unnamed = Image::base(Digest::of(guest), view.0)?;
        let name = Digest::of(format!("tokamak engine\n{}\n{}\n", Digest::of(guest), unnamed.key()).as_bytes());
        let base = Arc::new(Held::base(ledger, Image::base(name, view.0)?, view.0)?);
        let running = Arc::new(Running { name, guest: guest.into(), linked, stack_pages, base });
        let mut by_name = self.by_name.write().unwrap_or_else(PoisonError::into_inner);
        Ok(by_name.entry(name).or_insert(running).clone())
    }
}
