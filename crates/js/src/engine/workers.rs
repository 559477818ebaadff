//! The threads that run steps, and their bounded queue.
//! Invariant: guests run on these threads only. Their stacks are so deep that endless recursion ends as a RangeError in
//! the script and not as a stack overflow of the process.
//!
//! The number of permanent threads is the number of processors. Steps that do not end could occupy all of them, so if a
//! job has waited too long, a supervisor starts one more thread and the system shares the processors among all. Extra
//! threads end when they are idle.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use ports::scripts::Error;

use crate::image::{self, Codec};
use crate::machine::Guest;

use super::Settings;
use super::boot::StartError;

/// The stack of a thread, larger than the part that Wasmtime may use. It is address space; only pages that a guest
/// touched use memory.
const STACK_BYTES: usize = 72 << 20;
/// How long a job waits before an extra thread is started for it. If callers submit no more steps than there are
/// processors, a job waits this long only when other threads pause inside their steps (`Step::turns`).
const MAX_JOB_WAIT: Duration = Duration::from_millis(10);
/// The time between two checks of the supervisor.
const CHECK_INTERVAL: Duration = Duration::from_millis(5);
/// The number of checks with an empty queue after which the supervisor sleeps.
const QUIET_CHECKS: u32 = 400;
/// How long a thread waits for another job before it does idle work.
const IDLE_WORK_DELAY: Duration = Duration::from_millis(1);
/// The pages of retired guests that a thread holds until then.
const MAX_RETIRED_PAGES: u32 = 8192;
/// How long an extra thread waits for another job before it ends. A permanent thread repeats its idle work after this
/// time.
const LONG_WAIT: Duration = Duration::from_secs(2);

/// The values that a thread reuses from job to job.
pub struct WorkerState {
    pub codec: Codec,
    /// The pages that the last guest wrote. A buffer.
    pub dirty_pages: Vec<u32>,
    /// Evicted guests. They are dropped some time after the answer, because freeing their memory takes as long as a
    /// step.
    pub retired_guests: Vec<Guest>,
}

impl WorkerState {
    pub fn new() -> Result<Self, image::Error> {
        Ok(Self { codec: Codec::new()?, dirty_pages: Vec::new(), retired_guests: Vec::new() })
    }
}

type Job = Box<dyn FnOnce(&mut WorkerState) + Send>;
/// The work of a thread while there are no jobs.
type IdleWork = Arc<dyn Fn(&mut WorkerState) + Send + Sync>;

pub struct Workers {
    pool: Arc<ThreadPool>,
    supervisor: Option<JoinHandle<()>>,
}

struct ThreadPool {
    state: Mutex<PoolState>,
    /// Notified when there are more jobs than free threads, and at the end. Only the supervisor waits for it.
    overloaded: Condvar,
    /// The number of jobs that may wait. One more is refused.
    max_queued_jobs: usize,
    /// The number of threads that never end.
    permanent_threads: usize,
    /// The largest number of threads, extra threads included.
    max_threads: usize,
    idle_work: IdleWork,
}

#[derive(Default)]
struct PoolState {
    /// The waiting jobs, each with the time when it was submitted.
    jobs: VecDeque<(Instant, Job)>,
    /// The sleeping threads. The one that fell asleep last is at the end and is woken first, because its data may still
    /// be in the caches of its processor.
    sleeping: Vec<Thread>,
    /// The number of threads that were woken and have not taken their job yet.
    woken: usize,
    /// The number of all threads.
    threads: usize,
    /// Whether the supervisor checks by itself. It then need not be woken, which would cost as much as a job.
    is_supervised: bool,
    handles: Vec<JoinHandle<()>>,
    /// Whether the workers were dropped.
    closed: bool,
}

impl PoolState {
    /// Returns whether there are more jobs than free threads. A woken thread is free until it has taken its job.
    fn is_overloaded(&self) -> bool {
        self.jobs.len() > self.sleeping.len() + self.woken
    }

    /// Takes a sleeping thread for one more job. The caller unparks it after it has released the lock.
    fn take_sleeping(&mut self) -> Option<Thread> {
        let thread = self.sleeping.pop()?;
        self.woken += 1;
        Some(thread)
    }
}

impl Workers {
    pub fn start(settings: &Settings, idle_work: IdleWork) -> Result<Self, StartError> {
        let permanent_threads = settings.threads.max(1);
        let pool = Arc::new(ThreadPool {
            state: Mutex::default(),
            overloaded: Condvar::new(),
            max_queued_jobs: settings.queue.max(1),
            permanent_threads,
            max_threads: settings.max_threads.max(permanent_threads),
            idle_work,
        });
        // Made first, so that dropping it ends the threads if a later one cannot be started.
        let mut workers = Self { pool, supervisor: None };
        for _ in 0..permanent_threads {
            workers.pool.start_thread()?;
        }
        let pool = workers.pool.clone();
        let name = "javascript-threads".to_owned();
        workers.supervisor = Some(thread::Builder::new().name(name).spawn(move || pool.supervise())?);
        Ok(workers)
    }

    /// Queues a job, or returns [`Error::Busy`] if the queue is full.
    pub fn submit(&self, job: Job) -> Result<(), Error> {
        let mut state = self.pool.state();
        if state.closed || state.jobs.len() >= self.pool.max_queued_jobs {
            return Err(Error::Busy);
        }
        state.jobs.push_back((Instant::now(), job));
        let thread = state.take_sleeping();
        let wake_supervisor = state.is_overloaded() && !state.is_supervised;
        drop(state);
        if let Some(thread) = thread {
            thread.unpark();
        }
        if wake_supervisor {
            self.pool.overloaded.notify_one();
        }
        Ok(())
    }
}

impl Drop for Workers {
    /// Waits for all threads.
    fn drop(&mut self) {
        let sleeping = {
            let mut state = self.pool.state();
            state.closed = true;
            std::mem::take(&mut state.sleeping)
        };
        sleeping.iter().for_each(Thread::unpark);
        self.pool.overloaded.notify_all();
        // The supervisor ends first, so that it starts no more threads.
        if let Some(supervisor) = self.supervisor.take() {
            let _ = supervisor.join();
        }
        let handles = std::mem::take(&mut self.pool.state().handles);
        for thread in handles {
            let _ = thread.join();
        }
    }
}

impl ThreadPool {
    fn start_thread(self: &Arc<Self>) -> Result<(), StartError> {
        let mut worker = WorkerState::new()?;
        let pool = self.clone();
        let thread = deep_stack_thread().spawn(move || {
            let mut has_worked = false;
            while let Some(job) = pool.next_job(&mut worker, has_worked) {
                has_worked = true;
                // A panic affects one run only. Its answer is never sent, which its caller notices.
                if catch_unwind(AssertUnwindSafe(|| job(&mut worker))).is_err() {
                    tracing::error!("a JavaScript step panicked");
                }
                let retired_pages = worker.retired_guests.iter().map(Guest::pages).sum::<u32>();
                // With more jobs waiting there will be no idle time soon, so the memory is freed now.
                if retired_pages > MAX_RETIRED_PAGES || !pool.state().jobs.is_empty() {
                    worker.retired_guests.clear();
                }
            }
        })?;
        let mut state = self.state();
        state.threads += 1;
        state.handles.retain(|thread| !thread.is_finished());
        state.handles.push(thread);
        Ok(())
    }

    /// Waits for the next job. `None` means that this thread must end. If no job comes for a moment, the thread does
    /// its idle work. It does not do so at once, because the receiver of the last answer continues now, mostly on the
    /// same processor.
    fn next_job(&self, worker: &mut WorkerState, has_worked: bool) -> Option<Job> {
        let this_thread = thread::current();
        // Whether the last wait was a long one.
        let mut waited_long = false;
        // Whether the idle work was done since the last job. A new thread has none to do.
        let mut idle_work_done = !has_worked;
        let mut state = self.state();
        loop {
            if let Some((_, job)) = state.jobs.pop_front() {
                return Some(job);
            }
            if state.closed {
                return None;
            }
            // A thread that waited long has worked longer ago than all others in the list, so it is woken last.
            let position = if waited_long { 0 } else { state.sleeping.len() };
            state.sleeping.insert(position, this_thread.clone());
            let sleeps_since = Instant::now();
            drop(state);
            // `park_timeout` may return without a reason. The loop then only looks once more.
            thread::park_timeout(if idle_work_done { LONG_WAIT } else { IDLE_WORK_DELAY });
            state = self.state();
            // A thread that is not in the list any more was taken out of it by `take_sleeping` or at the end.
            let still_listed = state.sleeping.iter().position(|thread| thread.id() == this_thread.id());
            match still_listed {
                Some(index) => drop(state.sleeping.remove(index)),
                None => state.woken = state.woken.saturating_sub(1),
            }
            let waited = still_listed.map_or(Duration::ZERO, |_| sleeps_since.elapsed());
            waited_long = waited >= LONG_WAIT;
            if waited_long && state.jobs.is_empty() && state.threads > self.permanent_threads {
                state.threads -= 1;
                return None;
            }
            let idle_work_due = waited_long || !idle_work_done && waited >= IDLE_WORK_DELAY;
            if idle_work_due && state.jobs.is_empty() {
                drop(state);
                self.do_idle_work(worker);
                idle_work_done = true;
                state = self.state();
            }
        }
    }

    fn do_idle_work(&self, worker: &mut WorkerState) {
        worker.retired_guests.clear();
        if catch_unwind(AssertUnwindSafe(|| (self.idle_work)(worker))).is_err() {
            tracing::error!("the idle work of a JavaScript thread panicked");
        }
        worker.retired_guests.clear();
    }

    /// Starts an extra thread when a job has waited too long. Checks regularly while there is work, and sleeps while
    /// there is none.
    fn supervise(self: &Arc<Self>) {
        let mut quiet_checks = QUIET_CHECKS;
        let mut state = self.state();
        while !state.closed {
            if quiet_checks >= QUIET_CHECKS {
                state.is_supervised = false;
                let may_sleep = |state: &mut PoolState| !state.closed && !state.is_overloaded();
                state = self.overloaded.wait_while(state, may_sleep).unwrap_or_else(PoisonError::into_inner);
                state.is_supervised = true;
                quiet_checks = 0;
            }
            let waits_too_long = state.jobs.front().is_some_and(|(since, _)| since.elapsed() >= MAX_JOB_WAIT);
            let needs_thread = waits_too_long && state.is_overloaded() && state.threads < self.max_threads;
            quiet_checks = if state.jobs.is_empty() { quiet_checks + 1 } else { 0 };
            drop(state);
            if needs_thread && let Err(error) = self.start_thread() {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "no thread could be started for a waiting JavaScript step"
                );
            }
            thread::sleep(CHECK_INTERVAL);
            state = self.state();
        }
    }

    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs the work on a thread with the same stack as a worker, and waits for it.
pub fn on_a_deep_stack<T: Send>(work: impl FnOnce() -> Result<T, StartError> + Send) -> Result<T, StartError> {
    thread::scope(|scope| {
        let thread = deep_stack_thread().spawn_scoped(scope, work)?;
        thread.join().unwrap_or_else(|_| Err(StartError::Io(io::Error::other("the engine panicked while it booted"))))
    })
}

fn deep_stack_thread() -> thread::Builder {
    thread::Builder::new().name("javascript".to_owned()).stack_size(STACK_BYTES)
}
