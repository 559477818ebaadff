//! Threads with deep stacks, and a queue that can be full.
//! Invariant: a guest runs on no other thread. Deep recursion then ends as a RangeError of the program, not as a fault of
//! the process.
//!
//! As many threads as cores do the work. Programs that do not end would keep them all, so when a job has waited too long one
//! more thread is started, and the system shares the cores among them; a thread that is not needed any more goes.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use ports::scripts::Error;

use crate::image::{self, Codec};
use crate::machine::Instance;

use super::Settings;
use super::boot::StartError;

/// More than Wasmtime may use of it. It is address space: what no guest needed takes no memory.
const STACK: usize = 72 << 20;
/// How long a job waits before it gets a thread of its own. Who hands in no more steps than there are processors has it wait only
/// where threads wait themselves (`Step::turns`).
const PATIENCE: Duration = Duration::from_millis(10);
/// How often is looked whether one does, and how many looks at an empty queue end that.
const LOOK: Duration = Duration::from_millis(5);
const QUIET: u32 = 400;
/// How long a thread waits for another job before it does what can be done later.
const MOMENT: Duration = Duration::from_millis(1);
/// So many pages of guests that had to go are kept until then.
const GONE_PAGES: u32 = 8192;
/// How long a thread beyond the steady ones waits for another job; a steady one looks then again for what can be done.
const LEISURE: Duration = Duration::from_secs(2);

/// What a thread keeps from one job to the next.
pub struct Bench {
    pub codec: Codec,
    pub dirty: Vec<u32>,
    /// Guests that had to go, dropped some time after the answer: giving their memory back takes as long as a step.
    pub gone: Vec<Instance>,
}

impl Bench {
    pub fn new() -> Result<Self, image::Error> {
        Ok(Self { codec: Codec::new()?, dirty: Vec::new(), gone: Vec::new() })
    }
}

type Job = Box<dyn FnOnce(&mut Bench) + Send>;
/// What a thread does when there are no jobs.
type Leisure = Arc<dyn Fn(&mut Bench) + Send + Sync>;

pub struct Workers {
    queue: Arc<Queue>,
    overseer: Option<JoinHandle<()>>,
}

struct Queue {
    waiting: Mutex<Waiting>,
    /// A job came and no thread was free, or the end.
    crowded: Condvar,
    /// Jobs that may wait.
    most_jobs: usize,
    steady: usize,
    most_threads: usize,
    leisure: Leisure,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<(Instant, Job)>,
    /// Threads that sleep. The one that slept last is woken first: what it needs is still near its processor.
    idle: Vec<Thread>,
    /// Those that were woken and have not taken their job yet.
    woken: usize,
    threads: usize,
    /// Whether the overseer looks by itself. Waking it up for each job would cost as much as the job.
    overseen: bool,
    handles: Vec<JoinHandle<()>>,
    closed: bool,
}

impl Waiting {
    /// More jobs than threads that are free. One that was woken counts as free until it has taken its job.
    fn is_crowded(&self) -> bool {
        self.jobs.len() > self.idle.len() + self.woken
    }

    /// A thread for one more job, if one sleeps.
    fn wake(&mut self) -> Option<Thread> {
        let thread = self.idle.pop()?;
        self.woken += 1;
        Some(thread)
    }
}

impl Workers {
    pub fn start(settings: &Settings, leisure: Leisure) -> Result<Self, StartError> {
        let steady = settings.threads.max(1);
        let queue = Arc::new(Queue {
            waiting: Mutex::default(),
            crowded: Condvar::new(),
            most_jobs: settings.queue.max(1),
            steady,
            most_threads: settings.most_threads.max(steady),
            leisure,
        });
        let mut workers = Self { queue, overseer: None };
        for _ in 0..steady {
            workers.queue.start_thread()?;
        }
        let queue = workers.queue.clone();
        let name = "javascript-threads".to_owned();
        workers.overseer = Some(thread::Builder::new().name(name).spawn(move || queue.oversee())?);
        Ok(workers)
    }

    pub fn take(&self, job: Job) -> Result<(), Error> {
        let mut waiting = self.queue.waiting();
        if waiting.closed || waiting.jobs.len() >= self.queue.most_jobs {
            return Err(Error::Busy);
        }
        waiting.jobs.push_back((Instant::now(), job));
        let woken = waiting.wake();
        let crowded = waiting.is_crowded() && !waiting.overseen;
        drop(waiting);
        if let Some(thread) = woken {
            thread.unpark();
        }
        if crowded {
            self.queue.crowded.notify_one();
        }
        Ok(())
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        let asleep = {
            let mut waiting = self.queue.waiting();
            waiting.closed = true;
            std::mem::take(&mut waiting.idle)
        };
        asleep.iter().for_each(Thread::unpark);
        self.queue.crowded.notify_all();
        if let Some(overseer) = self.overseer.take() {
            let _ = overseer.join();
        }
        let handles = std::mem::take(&mut self.queue.waiting().handles);
        for thread in handles {
            let _ = thread.join();
        }
    }
}

impl Queue {
    fn start_thread(self: &Arc<Self>) -> Result<(), StartError> {
        let mut bench = Bench::new()?;
        let queue = self.clone();
        let thread = deep().spawn(move || {
            let mut worked = false;
            while let Some(job) = queue.next(&mut bench, worked) {
                worked = true;
                // A panic of ours is one run's misfortune: its answer is never sent, which its caller sees.
                if catch_unwind(AssertUnwindSafe(|| job(&mut bench))).is_err() {
                    tracing::error!("a JavaScript step panicked");
                }
                let large = bench.gone.iter().map(Instance::pages).sum::<u32>() > GONE_PAGES;
                if large || !queue.waiting().jobs.is_empty() {
                    bench.gone.clear();
                }
            }
        })?;
        let mut waiting = self.waiting();
        waiting.threads += 1;
        waiting.handles.retain(|thread| !thread.is_finished());
        waiting.handles.push(thread);
        Ok(())
    }

    /// The next job; `None` when this thread is to end. What is done between two jobs is done when none has come for a moment:
    /// whoever got the answer of the last one goes on with it, mostly on the same processor.
    fn next(&self, bench: &mut Bench, worked: bool) -> Option<Job> {
        let (me, mut late, mut rested) = (thread::current(), false, !worked);
        let mut waiting = self.waiting();
        loop {
            if let Some((_, job)) = waiting.jobs.pop_front() {
                return Some(job);
            }
            if waiting.closed {
                return None;
            }
            // One that looked and found nothing has not worked since.
            let at = if late { 0 } else { waiting.idle.len() };
            waiting.idle.insert(at, me.clone());
            let since = Instant::now();
            drop(waiting);
            // A wake-up that was meant for nobody is one look more.
            thread::park_timeout(if rested { LEISURE } else { MOMENT });
            waiting = self.waiting();
            // Who is not in the list any more was taken out of it to be woken.
            let asleep = waiting.idle.iter().position(|thread| thread.id() == me.id());
            match asleep {
                Some(at) => drop(waiting.idle.remove(at)),
                None => waiting.woken = waiting.woken.saturating_sub(1),
            }
            let idle = asleep.map_or(Duration::ZERO, |_| since.elapsed());
            late = idle >= LEISURE;
            if late && waiting.jobs.is_empty() && waiting.threads > self.steady {
                waiting.threads -= 1;
                return None;
            }
            if (late || !rested && idle >= MOMENT) && waiting.jobs.is_empty() {
                drop(waiting);
                self.rest(bench);
                rested = true;
                waiting = self.waiting();
            }
        }
    }

    fn rest(&self, bench: &mut Bench) {
        bench.gone.clear();
        if catch_unwind(AssertUnwindSafe(|| (self.leisure)(bench))).is_err() {
            tracing::error!("a JavaScript thread panicked between two steps");
        }
        bench.gone.clear();
    }

    /// Starts a thread for a job that has waited too long. Looks now and then while there is work, and sleeps when there is
    /// none.
    fn oversee(self: &Arc<Self>) {
        let mut quiet = QUIET;
        let mut waiting = self.waiting();
        while !waiting.closed {
            if quiet >= QUIET {
                waiting.overseen = false;
                let calm = |waiting: &mut Waiting| !waiting.closed && !waiting.is_crowded();
                waiting = self.crowded.wait_while(waiting, calm).unwrap_or_else(PoisonError::into_inner);
                waiting.overseen = true;
                quiet = 0;
            }
            let late = waiting.jobs.front().is_some_and(|(since, _)| since.elapsed() >= PATIENCE);
            let short = late && waiting.is_crowded() && waiting.threads < self.most_threads;
            quiet = if waiting.jobs.is_empty() { quiet + 1 } else { 0 };
            drop(waiting);
            if short && let Err(error) = self.start_thread() {
                tracing::warn!(error = &error as &dyn std::error::Error, "no thread for a JavaScript step that waits");
            }
            thread::sleep(LOOK);
            waiting = self.waiting();
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
