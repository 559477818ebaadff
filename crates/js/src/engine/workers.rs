//! Threads with deep stacks, and a queue that can be full.
//! Invariant: a guest runs on no other thread. Deep recursion then ends as a RangeError of the program, not as a fault of
//! the process.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use ports::scripts::Error;

use crate::image::{self, Codec};

use super::Settings;
use super::boot::StartError;

/// More than Wasmtime may use of it. It is address space: what no guest needed takes no memory.
const STACK: usize = 72 << 20;

/// What a thread keeps from one job to the next.
pub struct Bench {
    pub codec: Codec,
    pub dirty: Vec<u32>,
}

impl Bench {
    pub fn new() -> Result<Self, image::Error> {
        Ok(Self { codec: Codec::new()?, dirty: Vec::new() })
    }
}

type Job = Box<dyn FnOnce(&mut Bench) + Send>;

pub struct Workers {
    queue: Arc<Queue>,
    threads: Vec<JoinHandle<()>>,
}

struct Queue {
    waiting: Mutex<Waiting>,
    more: Condvar,
    most: usize,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    closed: bool,
}

impl Workers {
    pub fn start(settings: &Settings) -> Result<Self, StartError> {
        let queue = Arc::new(Queue { waiting: Mutex::default(), more: Condvar::new(), most: settings.queue.max(1) });
        let mut workers = Self { queue, threads: Vec::new() };
        for _ in 0..settings.threads.max(1) {
            let queue = workers.queue.clone();
            let mut bench = Bench::new()?;
            let thread = deep().spawn(move || {
                while let Some(job) = queue.next() {
                    // A panic of ours is one run's misfortune: its answer is never sent, which its caller sees.
                    if catch_unwind(AssertUnwindSafe(|| job(&mut bench))).is_err() {
                        tracing::error!("a JavaScript step panicked");
                    }
                }
            })?;
            workers.threads.push(thread);
        }
        Ok(workers)
    }

    pub fn take(&self, job: Job) -> Result<(), Error> {
        let mut waiting = self.queue.waiting();
        if waiting.closed || waiting.jobs.len() >= self.queue.most {
            return Err(Error::Busy);
        }
        waiting.jobs.push_back(job);
        drop(waiting);
        self.queue.more.notify_one();
        Ok(())
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.queue.waiting().closed = true;
        self.queue.more.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Queue {
    fn next(&self) -> Option<Job> {
        let mut waiting = self.waiting();
        loop {
            if let Some(job) = waiting.jobs.pop_front() {
                return Some(job);
            }
            if waiting.closed {
                return None;
            }
            waiting = self.more.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs once on a thread like those of the workers.
pub fn on_a_deep_stack<T: Send>(work: impl FnOnce() -> Result<T, StartError> + Send) -> Result<T, StartError> {
    thread::scope(|scope| {
        let thread = deep().spawn_scoped(scope, work)?;
        thread.join().unwrap_or_else(|_| Err(StartError::Io(io::Error::other("the engine panicked while it booted"))))
    })
}

fn deep() -> thread::Builder {
    thread::Builder::new().name("javascript".to_owned()).stack_size(STACK)
}
