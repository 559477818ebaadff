//! The type `Engine`, which implements `ports::Scripts`: it runs steps and loads heaps by key, on worker threads of its
//! own.
//! Invariant: the thread of a caller never blocks while JavaScript runs. If the queue is full, the call returns an
//! error at once.

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
static BUILT_IN_GUEST: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/guest.wasm"));

#[derive(Debug, Clone)]
pub struct Settings {
    /// The private folder for compiled code. If it is `None`, each start compiles the guest.
    pub code_cache: Option<PathBuf>,
    /// The number of permanent worker threads, which is the number of steps that normally run at the same time.
    pub threads: usize,
    /// The largest number of worker threads. Extra threads are started if steps occupy the permanent threads for long.
    pub max_threads: usize,
    /// The number of steps that may wait for a thread.
    pub queue: usize,
    /// The memory in bytes that loaded heaps and live guests may use together.
    pub memory_bytes: usize,
    /// The number of guests that stay alive between steps.
    pub live_guests: usize,
    /// Whether the heap is stored and loaded again after each job of a script, which is slow. Tests use this to show
    /// that a script cannot notice where it was parked.
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

/// The part of the engine that all worker threads share.
struct Core {
    engines: BootedEngines,
    heaps: HeapCache,
    /// The engine that makes new heaps.
    own_engine: Arc<BootedEngine>,
    /// The stop that ends every running step. It is set when the engine is dropped.
    closing: Stop,
    store_every_job: bool,
    /// Locked while a thread does idle work, so that only one thread does it at a time.
    idle_work_lock: Mutex<()>,
}

impl Engine {
    pub fn start(settings: &Settings) -> Result<Self, StartError> {
        Self::start_with(settings, BUILT_IN_GUEST)
    }

    /// Starts an engine with `guest` instead of the guest of this build.
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
            idle_work_lock: Mutex::default(),
        });
        let idle_core = core.clone();
        let workers = Workers::start(settings, Arc::new(move |worker| idle_core.do_idle_work(worker)))?;
        // A thread does idle work only after a job. This empty job starts the idle work, which prepares the spare guest
        // before the first step.
        workers.submit(Box::new(|_| {})).map_err(|error| StartError::Io(std::io::Error::other(error)))?;
        Ok(Self { core, workers })
    }

    /// Drops every loaded heap and every live guest. A step on a dropped heap returns `Error::Absent` until the heap is
    /// admitted again.
    pub fn forget(&self) {
        self.core.heaps.clear();
    }

    /// Returns the whole memory of a heap. Tests search the memory for content that must not be stored.
    #[doc(hidden)]
    pub async fn memory(&self, key: Digest) -> Result<Vec<u8>, Error> {
        self.on_worker(move |core, _| core.memory(key)).await
    }

    /// Runs `work` on a worker thread. The caller's thread does not block.
    async fn on_worker<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Core, &mut WorkerState) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let core = self.core.clone();
        let (answer, receiver) = oneshot::channel();
        self.workers.submit(Box::new(move |worker| {
            // If the caller stopped waiting while the job was queued, the work is skipped.
            if !answer.is_closed() {
                let _ = answer.send(work(&core, worker));
            }
        }))?;
        receiver.await.unwrap_or_else(|closed| Err(Error::Engine(closed.into())))
    }
}

impl Drop for Engine {
    /// Ends the running steps. The drop of `workers` then waits for the threads.
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
        crate::typescript::to_javascript(source)
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
        self.on_worker(move |core, worker| core.prepare_live_guest(worker, key)).await
    }

    async fn standalone_object(&self, key: Digest) -> Result<Vec<u8>, Error> {
        self.on_worker(move |core, worker| core.standalone_object(worker, key)).await
    }

    async fn globals(&self, key: Digest) -> Result<Vec<Global>, Error> {
        self.on_worker(move |core, _| core.globals(key)).await
    }
}
