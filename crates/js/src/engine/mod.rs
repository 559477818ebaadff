//! The engine behind `ports::Scripts`: runs steps and loads heaps by key, on threads of its own.
//! Invariant: no caller's thread waits for JavaScript, and a full queue is an error at once.

mod admit;
mod boot;
mod chain;
mod errors;
#[cfg(test)]
mod forged_heap_tests;
mod guests;
mod step;
mod store_every_job;
mod ticker;
mod workers;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use base::Digest;
use ports::scripts::{self, Error, Global, Scripts, Step, Stepped, Stop, Thrown};
use tokio::sync::oneshot;

use crate::heaps::HeapCache;
use crate::image::ParsedObject;

use boot::{BootedEngine, BootedEngines};
use workers::{WorkerState, Workers};

pub use boot::StartError;

/// The guest of this build.
static GUEST: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/guest.wasm"));

#[derive(Debug, Clone)]
pub struct Settings {
    /// The private folder for compiled code. Without one, each start compiles.
    pub code_cache: Option<PathBuf>,
    /// The number of steps that run at the same time.
    pub threads: usize,
    /// The same, if steps do not end.
    pub max_threads: usize,
    /// The number of steps that may wait for a thread.
    pub queue: usize,
    /// The memory that loaded heaps and live guests may use together.
    pub memory_bytes: usize,
    /// The number of guests that stay alive between steps.
    pub live_guests: usize,
    /// Stores the heap after every job of a script and loads it again. This is slow. Tests use it to show that a script
    /// cannot tell where it was parked.
    pub store_every_job: bool,
}

impl Default for Settings {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(2, Into::into);
        Self {
            code_cache: None,
            threads,
            max_threads: (threads + 16).max(64),
            queue: 4096,
            memory_bytes: 512 << 20,
            live_guests: 256,
            store_every_job: false,
        }
    }
}

pub struct Engine {
    core: Arc<Core>,
    workers: Workers,
}

/// The part that all threads share.
struct Core {
    engines: BootedEngines,
    heaps: HeapCache,
    /// The engine that makes new heaps.
    own_engine: Arc<BootedEngine>,
    /// Ends every step when the engine is dropped.
    closing: Stop,
    store_every_job: bool,
    /// Locked by the thread that does idle work.
    preparing: Mutex<()>,
}

impl Engine {
    pub fn start(settings: &Settings) -> Result<Self, StartError> {
        Self::start_with(settings, GUEST)
    }

    /// Starts with another guest than that of this build.
    pub fn start_with(settings: &Settings, guest: &[u8]) -> Result<Self, StartError> {
        let engines = BootedEngines::new(settings)?;
        let heaps = HeapCache::new(settings.memory_bytes, settings.live_guests);
        let own_engine = workers::on_a_deep_stack(|| engines.boot(guest, heaps.pool()))?;
        let core = Arc::new(Core {
            engines,
            heaps,
            own_engine,
            closing: Stop::default(),
            store_every_job: settings.store_every_job,
            preparing: Mutex::default(),
        });
        let idle_core = core.clone();
        let workers = Workers::start(settings, Arc::new(move |worker| idle_core.prepare(worker)))?;
        // Threads do idle work after a job. With this empty job, the spare guest is prepared before the first step.
        workers.submit(Box::new(|_| {})).map_err(|error| StartError::Io(std::io::Error::other(error)))?;
        Ok(Self { core, workers })
    }

    /// Drops every loaded heap and every live guest. Heaps are absent until they are admitted again.
    pub fn forget(&self) {
        self.core.heaps.clear();
    }

    /// Returns the whole memory of a heap. Tests search it for content that must not be there.
    #[doc(hidden)]
    pub async fn memory(&self, key: Digest) -> Result<Vec<u8>, Error> {
        self.on_worker(move |core, _| core.memory(key)).await
    }

    /// Runs the work on a thread of the engine. The caller's thread does not block.
    async fn on_worker<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Core, &mut WorkerState) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let core = self.core.clone();
        let (answer, receiver) = oneshot::channel();
        self.workers.submit(Box::new(move |worker| {
            // A caller that has given up while the job was queued needs no answer.
            if !answer.is_closed() {
                let _ = answer.send(work(&core, worker));
            }
        }))?;
        receiver.await.unwrap_or_else(|closed| Err(Error::Engine(closed.into())))
    }
}

impl Drop for Engine {
    /// Ends the running steps. Dropping the workers then waits for the threads.
    fn drop(&mut self) {
        self.core.closing.stop();
    }
}

#[async_trait]
impl Scripts for Engine {
    fn engine(&self) -> Digest {
        self.core.own_engine.name
    }

    fn guest(&self) -> &[u8] {
        &self.core.own_engine.guest
    }

    fn to_javascript(&self, source: &str) -> Result<String, Thrown> {
        crate::typescript::plain(source)
    }

    fn header(&self, object: &[u8]) -> Result<scripts::ObjectHeader, Error> {
        let parsed = ParsedObject::parse(object).map_err(|error| errors::object_error(Digest::of(object), error))?;
        Ok(scripts::ObjectHeader { key: parsed.key, parent: parsed.parent, memory_bytes: parsed.memory_bytes })
    }

    fn is_in_memory(&self, key: Digest) -> bool {
        self.core.heaps.has(&key)
    }

    async fn admit(&self, key: Digest, objects: Vec<Vec<u8>>) -> Result<(), Error> {
        self.on_worker(move |core, worker| core.admit(worker, key, &objects)).await
    }

    async fn admit_engine(&self, guest: Vec<u8>) -> Result<Digest, Error> {
        self.on_worker(move |core, _| core.admit_engine(&guest)).await
    }

    async fn step(&self, step: Step) -> Result<Stepped, Error> {
        self.step_from(Arc::default(), step).await
    }

    async fn step_from(&self, objects: Arc<Vec<Vec<u8>>>, step: Step) -> Result<Stepped, Error> {
        self.on_worker(move |core, worker| {
            if let (Some(heap), false) = (step.heap, objects.is_empty()) {
                core.admit(worker, heap, &objects)?;
            }
            core.step(worker, step)
        })
        .await
    }

    async fn prepare(&self, key: Digest) -> Result<(), Error> {
        self.on_worker(move |core, worker| core.ready(worker, key)).await
    }

    async fn standalone_object(&self, key: Digest) -> Result<Vec<u8>, Error> {
        self.on_worker(move |core, worker| core.whole(worker, key)).await
    }

    async fn globals(&self, key: Digest) -> Result<Vec<Global>, Error> {
        self.on_worker(move |core, _| core.globals(key)).await
    }
}
