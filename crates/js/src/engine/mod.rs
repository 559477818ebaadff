//! The port: steps and heaps by key, on threads of our own.
//! Invariant: no call waits on a caller's thread for JavaScript to run, and a full queue says so at once.

mod admit;
mod boot;
mod chain;
#[cfg(test)]
mod forged;
mod guest;
mod step;
mod ticker;
mod turns;
mod workers;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use base::Digest;
use ports::scripts::{self, Error, Global, Scripts, Step, Stepped, Stop, Thrown};
use tokio::sync::oneshot;

use crate::image::Frame;

use boot::{Engines, Running};
use workers::{Bench, Workers};

pub use boot::StartError;

/// The guest that this build makes.
static GUEST: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/guest.wasm"));

#[derive(Debug, Clone)]
pub struct Settings {
    /// Where compiled code is kept; a private folder. Without one, each start compiles.
    pub code: Option<PathBuf>,
    /// How many steps run side by side.
    pub threads: usize,
    /// How many may when those do not end.
    pub most_threads: usize,
    /// How many may wait for that.
    pub queue: usize,
    /// What heaps in memory may take together.
    pub memory_bytes: usize,
    /// How many guests stay alive between steps.
    pub live: usize,
    /// Stores the heap after every job of a program, and goes on from what was stored. Slow; it is how the tests show that a
    /// program cannot tell where it was parked.
    pub restless: bool,
}

impl Default for Settings {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(2, Into::into);
        Self {
            code: None,
            threads,
            most_threads: (threads + 16).max(64),
            queue: 4096,
            memory_bytes: 512 << 20,
            live: 256,
            restless: false,
        }
    }
}

pub struct Engine {
    core: Arc<Core>,
    workers: Workers,
}

/// What all threads share.
struct Core {
    engines: Engines,
    shelf: crate::heaps::Shelf,
    ours: Arc<Running>,
    /// Ends every step when the engine goes.
    closing: Stop,
    restless: bool,
    /// Held by who makes things ready for steps to come.
    preparing: Mutex<()>,
}

impl Engine {
    pub fn start(settings: &Settings) -> Result<Self, StartError> {
        Self::start_with(settings, GUEST)
    }

    /// With another guest than this build's.
    pub fn start_with(settings: &Settings, guest: &[u8]) -> Result<Self, StartError> {
        let engines = Engines::new(settings)?;
        let shelf = crate::heaps::Shelf::new(settings.memory_bytes, settings.live);
        let ours = workers::on_a_deep_stack(|| engines.boot(guest, shelf.ledger()))?;
        let (closing, restless, preparing) = (Stop::default(), settings.restless, Mutex::default());
        let core = Arc::new(Core { engines, shelf, ours, closing, restless, preparing });
        let idle = core.clone();
        let workers = Workers::start(settings, Arc::new(move |bench| idle.prepare(bench)))?;
        // They do what they do after every job before the first one.
        workers.take(Box::new(|_| {})).map_err(|error| StartError::Io(std::io::Error::other(error)))?;
        Ok(Self { core, workers })
    }

    /// Lets every heap in memory go: each that is asked for is absent until it is admitted again.
    pub fn forget(&self) {
        self.core.shelf.clear();
    }

    /// Every byte of a heap's memory, to look for what must not be there.
    #[doc(hidden)]
    pub async fn memory(&self, key: Digest) -> Result<Vec<u8>, Error> {
        self.there(move |core, _| core.memory(key)).await
    }

    /// Runs on a thread of ours, and waits without holding the caller's.
    async fn there<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Core, &mut Bench) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let core = self.core.clone();
        let (answer, done) = oneshot::channel();
        self.workers.take(Box::new(move |bench| {
            // Nobody waits any more for what waited in the queue.
            if !answer.is_closed() {
                let _ = answer.send(work(&core, bench));
            }
        }))?;
        done.await.unwrap_or_else(|gone| Err(Error::Engine(gone.into())))
    }
}

impl Drop for Engine {
    /// The threads are waited for after this.
    fn drop(&mut self) {
        self.core.closing.stop();
    }
}

#[async_trait]
impl Scripts for Engine {
    fn engine(&self) -> Digest {
        self.core.ours.name
    }

    fn guest(&self) -> &[u8] {
        &self.core.ours.guest
    }

    fn to_javascript(&self, source: &str) -> Result<String, Thrown> {
        crate::typescript::plain(source)
    }

    fn header(&self, object: &[u8]) -> Result<scripts::ObjectHeader, Error> {
        let frame = Frame::read(object).map_err(|error| admit::refused(Digest::of(object), error))?;
        Ok(scripts::ObjectHeader { key: frame.key, parent: frame.parent, memory_bytes: frame.memory_bytes })
    }

    fn is_in_memory(&self, key: Digest) -> bool {
        self.core.shelf.has(&key)
    }

    async fn admit(&self, key: Digest, objects: Vec<Vec<u8>>) -> Result<(), Error> {
        self.there(move |core, bench| core.admit(bench, key, &objects)).await
    }

    async fn admit_engine(&self, guest: Vec<u8>) -> Result<Digest, Error> {
        self.there(move |core, _| core.admit_engine(&guest)).await
    }

    async fn step(&self, step: Step) -> Result<Stepped, Error> {
        self.step_from(Arc::default(), step).await
    }

    async fn step_from(&self, objects: Arc<Vec<Vec<u8>>>, step: Step) -> Result<Stepped, Error> {
        self.there(move |core, bench| {
            if let (Some(heap), false) = (step.heap, objects.is_empty()) {
                core.admit(bench, heap, &objects)?;
            }
            core.step(bench, step)
        })
        .await
    }

    async fn prepare(&self, key: Digest) -> Result<(), Error> {
        self.there(move |core, bench| core.ready(bench, key)).await
    }

    async fn standalone_object(&self, key: Digest) -> Result<Vec<u8>, Error> {
        self.there(move |core, bench| core.whole(bench, key)).await
    }

    async fn globals(&self, key: Digest) -> Result<Vec<Global>, Error> {
        self.there(move |core, _| core.globals(key)).await
    }
}
