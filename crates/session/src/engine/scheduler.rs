//! Decides which step runs next: a fixed number at once, tenants in turn, and long steps yield to waiting ones.
//! Invariant: a free processor goes to the waiting tenant whose last turn is longest ago, however many steps other
//! tenants wait with. A step that does not end blocks no other: it yields its processor, keeps its memory, and
//! resumes when its turn comes again.
//!
//! Started steps occupy memory until they end, so their memory is bounded: a tenant may start another step if its own
//! usage, with that step, is at most the capacity left for all. One tenant alone can thus take half, the next one
//! half of the rest, and some capacity is always left.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use base::TenantId;
use ports::scripts::Turns;
use tokio::sync::oneshot;

use crate::sync::lock;

/// A step yields to waiting steps after this time.
const SLICE: Duration = Duration::from_millis(20);
/// How often a paused step checks whether it was stopped.
const LOOK: Duration = Duration::from_millis(20);
/// A paused step resumes after this time without a permit. The step that got the processor may itself be waiting for
/// a thread of the engine, so waiting longer could deadlock.
const LONGEST: Duration = Duration::from_secs(2);
/// The number of steps that may be started at once, unless there are more processors. Each needs a thread of the
/// engine, which has sixteen more than this (`js::Settings`).
const MIN_STEP_LIMIT: usize = 48;
/// Every step counts with at least this much memory.
const MIN_STEP_BYTES: u64 = 64 << 20;
/// If a tenant has both new and paused steps, one of this many turns goes to a paused one.
const NEW_STEPS: u32 = 4;

/// Shares the processors among the steps of all tenants.
pub(crate) struct Scheduler {
    state: Arc<Mutex<SchedulerState>>,
}

/// The accounting, behind one lock.
struct SchedulerState {
    /// Processors without a step. Negative while steps resumed without a permit.
    free: isize,
    /// The usage of all tenants together.
    begun: Usage,
    /// The limits for `begun`.
    most: Usage,
    by_tenant: BTreeMap<TenantId, Usage>,
    /// Waiting tenants, in the order of their turns.
    turns: VecDeque<TenantId>,
    waiting: BTreeMap<TenantId, WaitingSteps>,
}

/// The number of started steps and their memory limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Usage {
    steps: usize,
    bytes: u64,
}

impl Usage {
    fn plus(self, bytes: u64) -> Self {
        Self { steps: self.steps + 1, bytes: self.bytes.saturating_add(bytes) }
    }

    fn minus(self, bytes: u64) -> Self {
        Self { steps: self.steps.saturating_sub(1), bytes: self.bytes.saturating_sub(bytes) }
    }

    fn remaining(self, most: Self) -> Self {
        Self { steps: most.steps.saturating_sub(self.steps), bytes: most.bytes.saturating_sub(self.bytes) }
    }

    fn is_within(self, other: Self) -> bool {
        self.steps <= other.steps && self.bytes <= other.bytes
    }
}

/// The waiting steps of one tenant.
#[derive(Default)]
struct WaitingSteps {
    new: VecDeque<NewStep>,
    /// Steps that yielded and wait to resume.
    long: VecDeque<Arc<PausedStep>>,
    turns: u32,
}

/// A step that has not started.
struct NewStep {
    bytes: u64,
    give: oneshot::Sender<StepPermit>,
}

/// A step that waits on its thread.
struct PausedStep {
    granted: AtomicBool,
    thread: Thread,
}

/// The permission to run one step. Dropping it frees the processor and the memory.
pub(crate) struct StepPermit {
    /// `None` for a permit outside of the accounting.
    state: Option<Arc<Mutex<SchedulerState>>>,
    tenant: TenantId,
    bytes: u64,
    /// Whether the step uses a processor now, and when it last got one.
    on: AtomicBool,
    since: Mutex<Instant>,
    away_ms: AtomicU64,
}

impl Scheduler {
    /// Returns a scheduler for this many processors and this much memory for started steps.
    pub fn new(at_once: usize, most_bytes: u64) -> Self {
        let steps = SchedulerState {
            free: isize::try_from(at_once).unwrap_or(isize::MAX),
            begun: Usage::default(),
            most: Usage { steps: at_once.max(MIN_STEP_LIMIT), bytes: most_bytes },
            by_tenant: BTreeMap::new(),
            turns: VecDeque::new(),
            waiting: BTreeMap::new(),
        };
        Self { state: Arc::new(Mutex::new(steps)) }
    }

    /// Waits until a step with this memory limit may start.
    pub async fn permit(&self, tenant: &TenantId, bytes: u64) -> Arc<StepPermit> {
        let bytes = bytes.max(MIN_STEP_BYTES);
        let turn = {
            let mut steps = lock(&self.state);
            if steps.turns.is_empty() && steps.free > 0 && steps.fits(tenant, bytes) {
                steps.begin(tenant, bytes);
                return Arc::new(StepPermit::new(Some(self.state.clone()), tenant, bytes));
            }
            let (give, turn) = oneshot::channel();
            steps.waiting_of(tenant).new.push_back(NewStep { bytes, give });
            steps.grant_free(&self.state);
            turn
        };
        // A sender is never dropped before it sent a permit, so the fallback is unreachable in practice. It lets the
        // step run rather than fail.
        Arc::new(turn.await.unwrap_or_else(|_| StepPermit::new(None, tenant, bytes)))
    }
}

impl SchedulerState {
    /// Whether the tenant may start a step with this memory. A step that is alone may always start, or one larger
    /// than the capacity would never run.
    fn fits(&self, tenant: &TenantId, bytes: u64) -> bool {
        let (left, held) = (self.begun.remaining(self.most), self.by_tenant.get(tenant).copied().unwrap_or_default());
        self.begun.steps == 0 || held.plus(bytes).is_within(left)
    }

    /// Returns the waiting steps of a tenant. A tenant without any is appended to the turns.
    fn waiting_of(&mut self, tenant: &TenantId) -> &mut WaitingSteps {
        if !self.waiting.contains_key(tenant) {
            self.turns.push_back(tenant.clone());
        }
        self.waiting.entry(tenant.clone()).or_default()
    }

    fn begin(&mut self, tenant: &TenantId, bytes: u64) {
        self.free -= 1;
        self.begun = self.begun.plus(bytes);
        let held = self.by_tenant.entry(tenant.clone()).or_default();
        *held = held.plus(bytes);
    }

    /// Removes a step from the accounting. `on` tells whether it used a processor until now.
    fn end(&mut self, tenant: &TenantId, bytes: u64, on: bool) {
        self.free += isize::from(on);
        self.begun = self.begun.minus(bytes);
        if let Some(held) = self.by_tenant.get_mut(tenant) {
            *held = held.minus(bytes);
            if held.steps == 0 {
                self.by_tenant.remove(tenant);
            }
        }
    }

    /// Gives free processors to waiting steps, in the order of turns.
    fn grant_free(&mut self, state: &Arc<Mutex<Self>>) {
        while self.free > 0 {
            match self.next_step() {
                Some((_, NextStep::Long(waits))) => {
                    self.free -= 1;
                    waits.grant();
                }
                Some((tenant, NextStep::New(NewStep { bytes, give }))) => {
                    self.begin(&tenant, bytes);
                    // The receiver was dropped while it waited, so the permit is taken back and given to the next
                    // step.
                    if let Err(mut left) = give.send(StepPermit::new(Some(state.clone()), &tenant, bytes)) {
                        left.state = None;
                        self.end(&tenant, bytes, true);
                    }
                }
                None => break,
            }
        }
    }

    /// Removes a paused step that was stopped or resumed without a permit.
    fn remove_paused(&mut self, tenant: &TenantId, waits: &Arc<PausedStep>) {
        let Some(asked) = self.waiting.get_mut(tenant) else { return };
        asked.long.retain(|other| !Arc::ptr_eq(other, waits));
        if asked.new.is_empty() && asked.long.is_empty() {
            self.waiting.remove(tenant);
            self.turns.retain(|other| other != tenant);
        }
    }

    /// Removes waiting steps whose receivers were dropped. Otherwise a cancelled step at the front could block its
    /// tenant if it does not fit.
    fn drop_cancelled(&mut self) {
        for asked in self.waiting.values_mut() {
            while asked.new.front().is_some_and(|new| new.give.is_closed()) {
                asked.new.pop_front();
            }
        }
        self.waiting.retain(|_, asked| !asked.new.is_empty() || !asked.long.is_empty());
        self.turns.retain(|tenant| self.waiting.contains_key(tenant));
    }

    /// Returns the first waiting step, in the order of turns, that may run.
    fn next_step(&mut self) -> Option<(TenantId, NextStep)> {
        self.drop_cancelled();
        let fits = |steps: &Self, tenant: &TenantId| {
            let asked = steps.waiting.get(tenant)?;
            let new = asked.new.front().is_some_and(|new| steps.fits(tenant, new.bytes));
            asked.chosen(new)
        };
        let (at, chosen) = self.turns.iter().enumerate().find_map(|(at, tenant)| Some((at, fits(self, tenant)?)))?;
        let tenant = self.turns.remove(at)?;
        let asked = self.waiting.get_mut(&tenant)?;
        asked.turns = asked.turns.wrapping_add(1);
        let next = match chosen {
            StepChoice::New => NextStep::New(asked.new.pop_front()?),
            StepChoice::Long => NextStep::Long(asked.long.pop_front()?),
        };
        if asked.new.is_empty() && asked.long.is_empty() {
            self.waiting.remove(&tenant);
        } else {
            self.turns.push_back(tenant.clone());
        }
        Some((tenant, next))
    }
}

/// The step that a turn goes to.
enum NextStep {
    New(NewStep),
    Long(Arc<PausedStep>),
}

/// Whether a tenant's turn goes to a new step or to a paused one.
enum StepChoice {
    New,
    Long,
}

impl WaitingSteps {
    /// Prefers new steps, since most steps are short, but gives every `NEW_STEPS`th turn to a paused one so that it
    /// makes progress.
    fn chosen(&self, new_fits: bool) -> Option<StepChoice> {
        let long = !self.long.is_empty();
        match (new_fits, long) {
            (true, true) if self.turns % NEW_STEPS == NEW_STEPS - 1 => Some(StepChoice::Long),
            (true, _) => Some(StepChoice::New),
            (false, true) => Some(StepChoice::Long),
            (false, false) => None,
        }
    }
}

impl PausedStep {
    fn grant(&self) {
        self.granted.store(true, Ordering::Release);
        self.thread.unpark();
    }

    fn is_granted(&self) -> bool {
        self.granted.load(Ordering::Acquire)
    }
}

impl StepPermit {
    fn new(state: Option<Arc<Mutex<SchedulerState>>>, tenant: &TenantId, bytes: u64) -> Self {
        let (on, since, away_ms) = (AtomicBool::new(true), Mutex::new(Instant::now()), AtomicU64::new(0));
        Self { state, tenant: tenant.clone(), bytes, on, since, away_ms }
    }

    /// How long the step was paused in total.
    pub fn away_ms(&self) -> u64 {
        self.away_ms.load(Ordering::Relaxed)
    }

    /// Pauses until the next turn. Returns false if the step was stopped meanwhile.
    fn wait(&self, state: &Arc<Mutex<SchedulerState>>, stopped: &dyn Fn() -> bool) -> bool {
        let waits = Arc::new(PausedStep { granted: AtomicBool::new(false), thread: thread::current() });
        {
            let mut steps = lock(state);
            steps.free += 1;
            steps.waiting_of(&self.tenant).long.push_back(waits.clone());
            steps.grant_free(state);
        }
        let since = Instant::now();
        while !waits.is_granted() {
            thread::park_timeout(LOOK);
            let (stopped, long) = (stopped(), since.elapsed() >= LONGEST);
            if stopped || long {
                let mut steps = lock(state);
                if !waits.is_granted() {
                    steps.remove_paused(&self.tenant, &waits);
                    steps.free -= isize::from(!stopped);
                    return !stopped;
                }
            }
        }
        true
    }
}

impl Turns for StepPermit {
    fn pause(&self, stopped: &dyn Fn() -> bool) -> Duration {
        let began = Instant::now();
        let Some(state) = &self.state else { return Duration::ZERO };
        if !self.on.load(Ordering::Acquire) || began.saturating_duration_since(*lock(&self.since)) < SLICE {
            return Duration::ZERO;
        }
        let on = self.wait(state, stopped);
        self.on.store(on, Ordering::Release);
        let now = Instant::now();
        *lock(&self.since) = now;
        let away = now.saturating_duration_since(began);
        self.away_ms.fetch_add(u64::try_from(away.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
        away
    }
}

impl Drop for StepPermit {
    fn drop(&mut self) {
        let Some(state) = self.state.take() else { return };
        let mut steps = lock(&state);
        steps.end(&self.tenant, self.bytes, *self.on.get_mut());
        steps.grant_free(&state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1 << 30;

    fn tenant(name: &str) -> TenantId {
        TenantId::parse(name).unwrap()
    }

    #[tokio::test]
    async fn tenants_take_turns_and_who_left_is_passed_over() {
        let scheduler = Arc::new(Scheduler::new(1, GB));
        let order = Arc::new(Mutex::new(Vec::new()));
        let first = scheduler.permit(&TenantId::local(), 0).await;
        let mut tasks = Vec::new();
        for name in ["many", "many", "many", "gone", "one"] {
            let (scheduler, order) = (scheduler.clone(), order.clone());
            tasks.push(tokio::spawn(async move {
                let _permit = scheduler.permit(&tenant(name), 0).await;
                lock(&order).push(name);
                tokio::task::yield_now().await;
            }));
            tokio::task::yield_now().await;
        }
        tasks.remove(3).abort();
        tokio::task::yield_now().await;
        drop(first);
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*lock(&order), ["many", "one", "many", "many"]);
        let steps = lock(&scheduler.state);
        assert_eq!((steps.free, steps.begun, steps.by_tenant.len()), (1, Usage::default(), 0));
    }

    /// Endless steps fill all start permits. A newcomer still gets a processor soon, and the endless steps continue
    /// in turns.
    #[tokio::test(flavor = "multi_thread")]
    async fn an_endless_step_does_not_keep_a_processor() {
        let scheduler = Arc::new(Scheduler::new(1, GB));
        let (over, turns) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut endless = Vec::new();
        for _ in 0..6 {
            let permit = scheduler.permit(&tenant("endless"), 0).await;
            let (over, turns) = (over.clone(), turns.clone());
            endless.push(thread::spawn(move || {
                while !over.load(Ordering::Acquire) {
                    thread::sleep(Duration::from_millis(4));
                    if !permit.pause(&|| over.load(Ordering::Acquire)).is_zero() {
                        turns.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }));
        }
        for _ in 0..10 {
            drop(scheduler.permit(&tenant("brief"), 0).await);
            drop(scheduler.permit(&tenant("endless"), 0).await);
        }
        over.store(true, Ordering::Release);
        endless.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(turns.load(Ordering::Relaxed) > 6, "they had their turns");
        let steps = lock(&scheduler.state);
        assert_eq!((steps.free, steps.begun, steps.turns.len()), (1, Usage::default(), 0));
    }

    /// A tenant that uses as much as is left for all starts nothing more, while another tenant still can.
    #[tokio::test]
    async fn no_tenant_takes_all_of_the_memory() {
        let scheduler = Arc::new(Scheduler::new(usize::MAX / 2, GB));
        let mut begun = Vec::new();
        let soon = |scheduler: Arc<Scheduler>, name| async move {
            tokio::time::timeout(Duration::from_millis(20), scheduler.permit(&tenant(name), 128 << 20)).await.ok()
        };
        for (name, most) in [("one", 4), ("two", 2), ("three", 1), ("four", 1), ("five", 0)] {
            let mut count = 0;
            while let Some(permit) = soon(scheduler.clone(), name).await {
                begun.push(permit);
                count += 1;
            }
            assert_eq!(count, most, "{name}");
        }
        begun.truncate(0);
        assert!(soon(scheduler.clone(), "five").await.is_some());
        // A step larger than the whole capacity runs alone.
        assert_eq!(lock(&scheduler.state).begun, Usage::default());
        let _huge = scheduler.permit(&tenant("huge"), 4 * GB).await;
        assert!(soon(scheduler.clone(), "one").await.is_none());
    }

    #[tokio::test]
    async fn nobody_takes_all_of_the_threads() {
        let scheduler = Arc::new(Scheduler::new(2, 1 << 50));
        lock(&scheduler.state).free = 1_000;
        let soon = |scheduler: Arc<Scheduler>, name| async move {
            tokio::time::timeout(Duration::from_millis(5), scheduler.permit(&tenant(name), 0)).await.ok()
        };
        let mut begun = Vec::new();
        for (name, most) in [("one", 24), ("two", 12), ("three", 6)] {
            let mut count = 0;
            while let Some(permit) = soon(scheduler.clone(), name).await {
                begun.push(permit);
                count += 1;
            }
            assert_eq!(count, most, "{name}");
        }
    }

    #[tokio::test]
    async fn who_left_is_not_in_the_way_of_its_tenant() {
        let scheduler = Arc::new(Scheduler::new(2, GB));
        let one = tenant("one");
        let first = scheduler.permit(&one, GB / 4).await;
        let soon = |bytes| tokio::time::timeout(Duration::from_millis(20), scheduler.permit(&one, bytes));
        assert!(soon(GB).await.is_err(), "there is no room for that");
        assert!(soon(GB / 4).await.is_ok());
        drop(first);
    }
}
