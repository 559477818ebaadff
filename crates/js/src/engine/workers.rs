//! The worker threads that run the steps of scripts, and the bounded queue of steps that wait for a thread.
//! Invariant: guests run on worker threads only. The stack of a worker thread is so large that endless recursion in a
//! script ends as a RangeError in the script and not as a stack overflow of the process.
//!
//! The number of permanent threads is the number of processors. Steps that run for a long time could occupy all
//! permanent threads. So a supervisor starts one more thread when a job has waited too long, and the operating system
//! shares the processors among all threads. Extra threads end when they are idle.

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

/// The stack size of a worker thread. It is larger than the part that Wasmtime may use. The stack is reserved address
/// space: only the pages that a guest touched use memory.
const THREAD_STACK_BYTES: usize = 72 << 20;
/// The time that a job waits before the supervisor starts an extra thread. If callers submit no more steps than there
/// are processors, a job waits for this time only when other threads pause inside their steps (`Step::turns`).
const MAX_JOB_WAIT: Duration = Duration::from_millis(10);
/// The time between two checks of the job queue by the supervisor.
const CHECK_INTERVAL: Duration = Duration::from_millis(5);
/// The supervisor sleeps after this number of consecutive checks that found an empty job queue.
const MAX_QUIET_CHECKS: u32 = 400;
/// The time that a worker thread waits for another job before it does idle work.
const IDLE_WORK_DELAY: Duration = Duration::from_millis(1);
/// A worker thread frees its retired guests at once if they have more than this number of pages. Otherwise it frees
/// them when it is idle.
const MAX_RETIRED_GUEST_PAGES: u32 = 8192;
/// An extra thread ends after it has waited this time for another job. A permanent thread repeats its idle work after
/// this time.
const MAX_IDLE_WAIT: Duration = Duration::from_secs(2);
/// The pause after the first refusal of the system to start a thread.
const FIRST_RETRY_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause after such a refusal.
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(30);

/// The values that a worker thread reuses from job to job.
pub struct WorkerState {
    pub codec: Codec,
    /// A reused buffer for the numbers of the pages that the last guest wrote.
    pub dirty_pages: Vec<u32>,
    /// Guests that the heap cache evicted. The thread drops them after the step was answered, because freeing the
    /// memory of a guest takes as long as a step.
    pub retired_guests: Vec<Guest>,
}

impl WorkerState {
    pub fn new() -> Result<Self, image::Error> {
        Ok(Self { codec: Codec::new()?, dirty_pages: Vec::new(), retired_guests: Vec::new() })
    }
}

type Job = Box<dyn FnOnce(&mut WorkerState) + Send>;
/// The work that a worker thread does while no jobs wait.
type IdleWork = Arc<dyn Fn(&mut WorkerState) + Send + Sync>;

pub struct Workers {
    pool: Arc<ThreadPool>,
    supervisor: Option<JoinHandle<()>>,
}

struct ThreadPool {
    state: Mutex<PoolState>,
    /// Wakes the supervisor. It is notified when there are more jobs than free threads, and when the workers are
    /// dropped.
    overloaded: Condvar,
    /// The number of jobs that may wait. A further job is refused with [`Error::Busy`].
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
    /// The sleeping threads. The thread that fell asleep last is at the end of the list and is woken first, because its
    /// data may still be in the caches of its processor.
    sleeping: Vec<Thread>,
    /// The number of threads that were woken and have not taken their job yet.
    woken: usize,
    /// The number of worker threads, permanent and extra.
    threads: usize,
    /// Whether the supervisor is awake and checks the queue at intervals. An awake supervisor is not notified, because
    /// a notification costs as much as a job.
    is_supervised: bool,
    handles: Vec<JoinHandle<()>>,
    /// Whether the [`Workers`] were dropped. The threads then end.
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
        // This value is created before the threads. If a thread cannot be started, dropping this value ends the threads
        // that were started before.
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
    /// Ends the supervisor and all worker threads, and waits until they have ended.
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
                // A panic fails the run of this job only. The job drops its answer channel, so the caller receives an
                // error.
                if catch_unwind(AssertUnwindSafe(|| job(&mut worker))).is_err() {
                    tracing::error!("a JavaScript step panicked, so its run fails");
                }
                let retired_pages = worker.retired_guests.iter().map(Guest::pages).sum::<u32>();
                // While more jobs wait, the thread has no idle time soon, so it frees the memory of retired guests now.
                if retired_pages > MAX_RETIRED_GUEST_PAGES || !pool.state().jobs.is_empty() {
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

    /// Waits for the next job. `None` means that this thread must end. If no job arrives within `IDLE_WORK_DELAY`, the
    /// thread does its idle work. The thread does not do idle work at once, because the receiver of the last answer now
    /// continues, mostly on the same processor.
    fn next_job(&self, worker: &mut WorkerState, has_worked: bool) -> Option<Job> {
        let this_thread = thread::current();
        // Whether the last wait lasted at least `MAX_IDLE_WAIT`.
        let mut waited_long = false;
        // Whether the idle work was done since the last job. A new thread has no idle work.
        let mut idle_work_done = !has_worked;
        let mut state = self.state();
        loop {
            if let Some((_, job)) = state.jobs.pop_front() {
                return Some(job);
            }
            if state.closed {
                return None;
            }
            // A thread that waited long ran its last job before all other threads in the list, so it is woken last.
            let position = if waited_long { 0 } else { state.sleeping.len() };
            state.sleeping.insert(position, this_thread.clone());
            let sleeps_since = Instant::now();
            drop(state);
            // `park_timeout` may return early without a reason. The loop then checks the queue once more.
            thread::park_timeout(if idle_work_done { MAX_IDLE_WAIT } else { IDLE_WORK_DELAY });
            state = self.state();
            // If this thread is no longer in the list of sleeping threads, `take_sleeping` or the drop of `Workers` has
            // removed it.
            let still_listed = state.sleeping.iter().position(|thread| thread.id() == this_thread.id());
            match still_listed {
                Some(index) => drop(state.sleeping.remove(index)),
                None => state.woken = state.woken.saturating_sub(1),
            }
            let waited = still_listed.map_or(Duration::ZERO, |_| sleeps_since.elapsed());
            waited_long = waited >= MAX_IDLE_WAIT;
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
            tracing::error!("a JavaScript worker thread panicked in its idle work; it goes on with the next step");
        }
        worker.retired_guests.clear();
    }

    /// Starts an extra thread when a job has waited longer than `MAX_JOB_WAIT`. The supervisor checks at intervals
    /// while jobs arrive, and sleeps while the queue stays empty.
    fn supervise(self: &Arc<Self>) {
        let mut quiet_checks = MAX_QUIET_CHECKS;
        let mut refusals = ThreadRefusals::default();
        let mut state = self.state();
        while !state.closed {
            if quiet_checks >= MAX_QUIET_CHECKS {
                state.is_supervised = false;
                let may_sleep = |state: &mut PoolState| !state.closed && !state.is_overloaded();
                state = self.overloaded.wait_while(state, may_sleep).unwrap_or_else(PoisonError::into_inner);
                state.is_supervised = true;
                quiet_checks = 0;
            }
            let waits_too_long = state.jobs.front().is_some_and(|(since, _)| since.elapsed() >= MAX_JOB_WAIT);
            let needs_thread = waits_too_long
                && state.is_overloaded()
                && state.threads < self.max_threads
                && refusals.may_try(Instant::now());
            quiet_checks = if state.jobs.is_empty() { quiet_checks + 1 } else { 0 };
            drop(state);
            if needs_thread {
                match self.start_thread() {
                    Ok(()) => refusals = ThreadRefusals::default(),
                    Err(error) => refusals.note(&error, Instant::now()),
                }
            }
            thread::sleep(CHECK_INTERVAL);
            state = self.state();
        }
    }

    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The refusals of the system to start a thread. Preparing a thread costs more than a short step, so each refusal doubles the pause
/// before the next try, and few of them are logged.
#[derive(Default)]
struct ThreadRefusals {
    /// The number of refusals since a thread was started.
    count: u32,
    /// Before this time no thread is tried.
    next_try: Option<Instant>,
}

impl ThreadRefusals {
    fn may_try(&self, now: Instant) -> bool {
        self.next_try.is_none_or(|next| now >= next)
    }

    fn note(&mut self, error: &StartError, now: Instant) {
        let pause = FIRST_RETRY_PAUSE.saturating_mul(2_u32.saturating_pow(self.count)).min(MAX_RETRY_PAUSE);
        self.next_try = now.checked_add(pause);
        self.count = self.count.saturating_add(1);
        // The first refusal is logged, then the second, the fourth and so on.
        if self.count.is_power_of_two() {
            let limit = match error {
                StartError::Io(error) => base::system_limit(error),
                _ => None,
            };
            tracing::warn!(
                error = error as &dyn std::error::Error,
                limit,
                refusals = self.count,
                "no extra thread could be started, so JavaScript steps wait longer; raise the limit that is named"
            );
        }
    }
}

/// Runs the work on a thread with the same stack as a worker, and waits for it.
pub fn on_a_deep_stack<T: Send>(work: impl FnOnce() -> Result<T, StartError> + Send) -> Result<T, StartError> {
    thread::scope(|scope| {
        let thread = deep_stack_thread().spawn_scoped(scope, work)?;
        thread
            .join()
            .unwrap_or_else(|_| Err(StartError::Io(io::Error::other("the JavaScript engine panicked while it booted"))))
    })
}

fn deep_stack_thread() -> thread::Builder {
    thread::Builder::new().name("javascript".to_owned()).stack_size(THREAD_STACK_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_the_system_refuses_are_tried_less_and_less_often() {
        let error = StartError::Io(io::Error::from_raw_os_error(11));
        let mut refusals = ThreadRefusals::default();
        let start = Instant::now();
        let mut tries = Vec::new();
        // The supervisor checks every 5 ms; a minute of checks.
        for check in 0..12_000_u32 {
            let now = start + CHECK_INTERVAL * check;
            if refusals.may_try(now) {
                refusals.note(&error, now);
                tries.push((CHECK_INTERVAL * check).as_millis());
            }
        }
        assert_eq!(tries, [0, 100, 300, 700, 1_500, 3_100, 6_300, 12_700, 25_500, 51_100]);
    }
}
