//! Whose step is next: so many at once, tenants in turn, and who has gone on for long lets others go before.
//! Invariant: a processor that was given back goes to a waiting tenant that has waited longest since its last turn, whatever
//! number of steps another one has asked for. A step that does not end keeps no processor from anybody: it stays begun, with
//! its memory, and goes on when its turn has come again.
//!
//! What has begun and not ended takes memory, so that is bounded: a tenant may begin another step while what it has begun is no
//! more than what is left for all. One tenant then gets half, the next half of the rest, and there is always some left.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use base::TenantId;
use ports::scripts::Turns;
use tokio::sync::oneshot;

use crate::shared::lock;

/// After this a step lets those go before that wait.
const SLICE: Duration = Duration::from_millis(20);
/// How often a step that waits looks whether it was stopped.
const LOOK: Duration = Duration::from_millis(20);
/// A step that has waited for so long goes on all the same: what was given a processor may have no thread.
const LONGEST: Duration = Duration::from_secs(2);
/// Steps that have begun, unless there are more processors. Each has a thread of the engine, which has sixteen more than this
/// (`js::Settings`).
const MOST_BEGUN: usize = 48;
/// A step is counted with at least this much.
const LEAST_BYTES: u64 = 64 << 20;
/// Of so many turns of a tenant one is for a step that has gone on for long, where others of it have not begun.
const NEW_STEPS: u32 = 4;

pub(crate) struct Fair {
    state: Arc<Mutex<Steps>>,
}

struct Steps {
    /// Processors that no step uses; fewer than none where someone went on all the same.
    free: isize,
    /// Of all.
    begun: Begun,
    most: Begun,
    of: BTreeMap<TenantId, Begun>,
    /// Tenants that wait, in the order of their turns.
    turns: VecDeque<TenantId>,
    asked: BTreeMap<TenantId, Asked>,
}

/// Steps that have begun, and what they may use of the memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Begun {
    steps: usize,
    bytes: u64,
}

impl Begun {
    fn and(self, bytes: u64) -> Self {
        Self { steps: self.steps + 1, bytes: self.bytes.saturating_add(bytes) }
    }

    fn without(self, bytes: u64) -> Self {
        Self { steps: self.steps.saturating_sub(1), bytes: self.bytes.saturating_sub(bytes) }
    }

    fn left_of(self, most: Self) -> Self {
        Self { steps: most.steps.saturating_sub(self.steps), bytes: most.bytes.saturating_sub(self.bytes) }
    }

    fn is_within(self, other: Self) -> bool {
        self.steps <= other.steps && self.bytes <= other.bytes
    }
}

#[derive(Default)]
struct Asked {
    new: VecDeque<New>,
    /// Those that let others go before.
    long: VecDeque<Arc<Waits>>,
    turns: u32,
}

struct New {
    bytes: u64,
    give: oneshot::Sender<Place>,
}

/// A step that waits on its thread.
struct Waits {
    granted: AtomicBool,
    thread: Thread,
}

/// Leave to run one step; given back when it is dropped.
pub(crate) struct Place {
    /// `None` where it takes nobody's place.
    state: Option<Arc<Mutex<Steps>>>,
    tenant: TenantId,
    bytes: u64,
    /// Whether it uses a processor, and since when.
    on: AtomicBool,
    since: Mutex<Instant>,
    away_ms: AtomicU64,
}

impl Fair {
    /// So many side by side, and so much memory for all that have begun.
    pub fn new(at_once: usize, most_bytes: u64) -> Self {
        let steps = Steps {
            free: isize::try_from(at_once).unwrap_or(isize::MAX),
            begun: Begun::default(),
            most: Begun { steps: at_once.max(MOST_BEGUN), bytes: most_bytes },
            of: BTreeMap::new(),
            turns: VecDeque::new(),
            asked: BTreeMap::new(),
        };
        Self { state: Arc::new(Mutex::new(steps)) }
    }

    pub async fn place(&self, tenant: &TenantId, bytes: u64) -> Arc<Place> {
        let bytes = bytes.max(LEAST_BYTES);
        let turn = {
            let mut steps = lock(&self.state);
            if steps.turns.is_empty() && steps.free > 0 && steps.fits(tenant, bytes) {
                steps.begin(tenant, bytes);
                return Arc::new(Place::new(Some(self.state.clone()), tenant, bytes));
            }
            let (give, turn) = oneshot::channel();
            steps.waits(tenant).new.push_back(New { bytes, give });
            steps.give(&self.state);
            turn
        };
        // Whoever is in the list is given a place before the list is dropped.
        Arc::new(turn.await.unwrap_or_else(|_| Place::new(None, tenant, bytes)))
    }
}

impl Steps {
    fn fits(&self, tenant: &TenantId, bytes: u64) -> bool {
        let (left, held) = (self.begun.left_of(self.most), self.of.get(tenant).copied().unwrap_or_default());
        self.begun.steps == 0 || held.and(bytes).is_within(left)
    }

    /// Those of a tenant that wait, which has a turn from now on.
    fn waits(&mut self, tenant: &TenantId) -> &mut Asked {
        if !self.asked.contains_key(tenant) {
            self.turns.push_back(tenant.clone());
        }
        self.asked.entry(tenant.clone()).or_default()
    }

    fn begin(&mut self, tenant: &TenantId, bytes: u64) {
        self.free -= 1;
        self.begun = self.begun.and(bytes);
        let held = self.of.entry(tenant.clone()).or_default();
        *held = held.and(bytes);
    }

    /// `on`: it used a processor until now.
    fn end(&mut self, tenant: &TenantId, bytes: u64, on: bool) {
        self.free += isize::from(on);
        self.begun = self.begun.without(bytes);
        if let Some(held) = self.of.get_mut(tenant) {
            *held = held.without(bytes);
            if held.steps == 0 {
                self.of.remove(tenant);
            }
        }
    }

    /// Gives what is free to those whose turn it is.
    fn give(&mut self, state: &Arc<Mutex<Self>>) {
        while self.free > 0 {
            match self.next() {
                Some((_, Next::Long(waits))) => {
                    self.free -= 1;
                    waits.grant();
                }
                Some((tenant, Next::New(New { bytes, give }))) => {
                    self.begin(&tenant, bytes);
                    // It went away while it waited: the place is still ours to give.
                    if let Err(mut left) = give.send(Place::new(Some(state.clone()), &tenant, bytes)) {
                        left.state = None;
                        self.end(&tenant, bytes, true);
                    }
                }
                None => break,
            }
        }
    }

    /// One that waited does no more.
    fn leave(&mut self, tenant: &TenantId, waits: &Arc<Waits>) {
        let Some(asked) = self.asked.get_mut(tenant) else { return };
        asked.long.retain(|other| !Arc::ptr_eq(other, waits));
        if asked.new.is_empty() && asked.long.is_empty() {
            self.asked.remove(tenant);
            self.turns.retain(|other| other != tenant);
        }
    }

    /// Who no longer waits is not in the way of those behind it.
    fn forget_who_left(&mut self) {
        for asked in self.asked.values_mut() {
            while asked.new.front().is_some_and(|new| new.give.is_closed()) {
                asked.new.pop_front();
            }
        }
        self.asked.retain(|_, asked| !asked.new.is_empty() || !asked.long.is_empty());
        self.turns.retain(|tenant| self.asked.contains_key(tenant));
    }

    /// The first in the order of turns that may go on.
    fn next(&mut self) -> Option<(TenantId, Next)> {
        self.forget_who_left();
        let fits = |steps: &Self, tenant: &TenantId| {
            let asked = steps.asked.get(tenant)?;
            let new = asked.new.front().is_some_and(|new| steps.fits(tenant, new.bytes));
            asked.chosen(new)
        };
        let (at, chosen) = self.turns.iter().enumerate().find_map(|(at, tenant)| Some((at, fits(self, tenant)?)))?;
        let tenant = self.turns.remove(at)?;
        let asked = self.asked.get_mut(&tenant)?;
        asked.turns = asked.turns.wrapping_add(1);
        let next = match chosen {
            Chosen::New => Next::New(asked.new.pop_front()?),
            Chosen::Long => Next::Long(asked.long.pop_front()?),
        };
        if asked.new.is_empty() && asked.long.is_empty() {
            self.asked.remove(&tenant);
        } else {
            self.turns.push_back(tenant.clone());
        }
        Some((tenant, next))
    }
}

enum Next {
    New(New),
    Long(Arc<Waits>),
}

enum Chosen {
    New,
    Long,
}

impl Asked {
    /// New ones first, since most are short; now and then one that is not.
    fn chosen(&self, new_fits: bool) -> Option<Chosen> {
        let long = !self.long.is_empty();
        match (new_fits, long) {
            (true, true) if self.turns % NEW_STEPS == NEW_STEPS - 1 => Some(Chosen::Long),
            (true, _) => Some(Chosen::New),
            (false, true) => Some(Chosen::Long),
            (false, false) => None,
        }
    }
}

impl Waits {
    fn grant(&self) {
        self.granted.store(true, Ordering::Release);
        self.thread.unpark();
    }

    fn is_granted(&self) -> bool {
        self.granted.load(Ordering::Acquire)
    }
}

impl Place {
    fn new(state: Option<Arc<Mutex<Steps>>>, tenant: &TenantId, bytes: u64) -> Self {
        let (on, since, away_ms) = (AtomicBool::new(true), Mutex::new(Instant::now()), AtomicU64::new(0));
        Self { state, tenant: tenant.clone(), bytes, on, since, away_ms }
    }

    /// How long it let others go before.
    pub fn away_ms(&self) -> u64 {
        self.away_ms.load(Ordering::Relaxed)
    }

    /// Waits for its next turn. False where it was stopped before that.
    fn wait(&self, state: &Arc<Mutex<Steps>>, stopped: &dyn Fn() -> bool) -> bool {
        let waits = Arc::new(Waits { granted: AtomicBool::new(false), thread: thread::current() });
        {
            let mut steps = lock(state);
            steps.free += 1;
            steps.waits(&self.tenant).long.push_back(waits.clone());
            steps.give(state);
        }
        let since = Instant::now();
        while !waits.is_granted() {
            thread::park_timeout(LOOK);
            let (stopped, long) = (stopped(), since.elapsed() >= LONGEST);
            if stopped || long {
                let mut steps = lock(state);
                if !waits.is_granted() {
                    steps.leave(&self.tenant, &waits);
                    steps.free -= isize::from(!stopped);
                    return !stopped;
                }
            }
        }
        true
    }
}

impl Turns for Place {
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

impl Drop for Place {
    fn drop(&mut self) {
        let Some(state) = self.state.take() else { return };
        let mut steps = lock(&state);
        steps.end(&self.tenant, self.bytes, *self.on.get_mut());
        steps.give(&state);
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
        let fair = Arc::new(Fair::new(1, GB));
        let order = Arc::new(Mutex::new(Vec::new()));
        let first = fair.place(&TenantId::local(), 0).await;
        let mut tasks = Vec::new();
        for name in ["many", "many", "many", "gone", "one"] {
            let (fair, order) = (fair.clone(), order.clone());
            tasks.push(tokio::spawn(async move {
                let _place = fair.place(&tenant(name), 0).await;
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
        let steps = lock(&fair.state);
        assert_eq!((steps.free, steps.begun, steps.of.len()), (1, Begun::default(), 0));
    }

    /// Endless ones, as many as may begin: whoever comes gets a processor in a moment, and they go on in turns.
    #[tokio::test(flavor = "multi_thread")]
    async fn who_does_not_end_keeps_no_processor() {
        let fair = Arc::new(Fair::new(1, GB));
        let (over, turns) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut endless = Vec::new();
        for _ in 0..6 {
            let place = fair.place(&tenant("endless"), 0).await;
            let (over, turns) = (over.clone(), turns.clone());
            endless.push(thread::spawn(move || {
                while !over.load(Ordering::Acquire) {
                    thread::sleep(Duration::from_millis(4));
                    if !place.pause(&|| over.load(Ordering::Acquire)).is_zero() {
                        turns.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }));
        }
        for _ in 0..10 {
            drop(fair.place(&tenant("brief"), 0).await);
            drop(fair.place(&tenant("endless"), 0).await);
        }
        over.store(true, Ordering::Release);
        endless.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(turns.load(Ordering::Relaxed) > 6, "they had their turns");
        let steps = lock(&fair.state);
        assert_eq!((steps.free, steps.begun, steps.turns.len()), (1, Begun::default(), 0));
    }

    /// A tenant that has begun as much as is left for all begins nothing more; another one still does.
    #[tokio::test]
    async fn nobody_takes_all_of_the_memory() {
        let fair = Arc::new(Fair::new(usize::MAX / 2, GB));
        let mut begun = Vec::new();
        let soon = |fair: Arc<Fair>, name| async move {
            tokio::time::timeout(Duration::from_millis(20), fair.place(&tenant(name), 128 << 20)).await.ok()
        };
        for (name, most) in [("one", 4), ("two", 2), ("three", 1), ("four", 1), ("five", 0)] {
            let mut count = 0;
            while let Some(place) = soon(fair.clone(), name).await {
                begun.push(place);
                count += 1;
            }
            assert_eq!(count, most, "{name}");
        }
        begun.truncate(0);
        assert!(soon(fair.clone(), "five").await.is_some());
        // One that is larger than all there is goes alone.
        assert_eq!(lock(&fair.state).begun, Begun::default());
        let _huge = fair.place(&tenant("huge"), 4 * GB).await;
        assert!(soon(fair.clone(), "one").await.is_none());
    }

    #[tokio::test]
    async fn nobody_takes_all_of_the_threads() {
        let fair = Arc::new(Fair::new(2, 1 << 50));
        lock(&fair.state).free = 1_000;
        let soon = |fair: Arc<Fair>, name| async move {
            tokio::time::timeout(Duration::from_millis(5), fair.place(&tenant(name), 0)).await.ok()
        };
        let mut begun = Vec::new();
        for (name, most) in [("one", 24), ("two", 12), ("three", 6)] {
            let mut count = 0;
            while let Some(place) = soon(fair.clone(), name).await {
                begun.push(place);
                count += 1;
            }
            assert_eq!(count, most, "{name}");
        }
    }

    #[tokio::test]
    async fn who_left_is_not_in_the_way_of_its_tenant() {
        let fair = Arc::new(Fair::new(2, GB));
        let one = tenant("one");
        let first = fair.place(&one, GB / 4).await;
        let soon = |bytes| tokio::time::timeout(Duration::from_millis(20), fair.place(&one, bytes));
        assert!(soon(GB).await.is_err(), "there is no room for that");
        assert!(soon(GB / 4).await.is_ok());
        drop(first);
    }
}
