//! The ticker: a thread that increments Wasmtime's epoch while guests run. At each new epoch a running guest checks its
//! deadline.
//! Invariant: while no guest runs, the thread sleeps and nothing wakes it.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// The time between two increments of the epoch. A guest notices its deadline at most this time too late.
const TICK_INTERVAL: Duration = Duration::from_millis(4);
/// The number of ticks without a running guest after which the thread sleeps. The thread does not sleep at once,
/// because waking it costs time in the next step.
const MAX_IDLE_TICKS: u32 = 500;

pub struct Ticker(Arc<TickerState>);

struct TickerState {
    /// The number of [`TickGuard`]s, which is the number of running guests.
    running_guests: AtomicUsize,
    asleep: Mutex<bool>,
    /// Notified when `asleep` becomes false.
    wake: Condvar,
    /// Whether the ticker was dropped.
    closed: AtomicBool,
}

/// A guard that a caller holds while a guest runs. The ticker does not sleep while a guard exists.
pub struct TickGuard<'a>(&'a TickerState);

impl Ticker {
    pub fn start(engine: wasmtime::Engine) -> io::Result<Self> {
        let state = Arc::new(TickerState {
            running_guests: AtomicUsize::new(0),
            asleep: Mutex::new(false),
            wake: Condvar::new(),
            closed: AtomicBool::new(false),
        });
        let ticker = Self(state.clone());
        thread::Builder::new().name("javascript-clock".to_owned()).spawn(move || state.tick(&engine))?;
        Ok(ticker)
    }

    /// Wakes the ticker, which then runs until the returned guard is dropped.
    pub fn keep_ticking(&self) -> TickGuard<'_> {
        // `running_guests` must be incremented before `asleep` is read. The thread falls asleep only if
        // `running_guests` is 0 under the lock. So either the thread sees this guest, or this call sees that the thread
        // is asleep.
        self.0.running_guests.fetch_add(1, Ordering::SeqCst);
        let mut asleep = self.0.asleep.lock().unwrap_or_else(PoisonError::into_inner);
        if *asleep {
            *asleep = false;
            self.0.wake.notify_one();
        }
        drop(asleep);
        TickGuard(&self.0)
    }
}

impl Drop for TickGuard<'_> {
    fn drop(&mut self) {
        self.0.running_guests.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.0.closed.store(true, Ordering::SeqCst);
        *self.0.asleep.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.wake.notify_one();
    }
}

impl TickerState {
    fn tick(&self, engine: &wasmtime::Engine) {
        let mut idle_ticks = 0;
        while !self.closed.load(Ordering::SeqCst) {
            thread::sleep(TICK_INTERVAL);
            if self.running_guests.load(Ordering::SeqCst) > 0 {
                engine.increment_epoch();
                idle_ticks = 0;
                continue;
            }
            idle_ticks += 1;
            if idle_ticks < MAX_IDLE_TICKS {
                continue;
            }
            let mut asleep = self.asleep.lock().unwrap_or_else(PoisonError::into_inner);
            *asleep = self.running_guests.load(Ordering::SeqCst) == 0 && !self.closed.load(Ordering::SeqCst);
            while *asleep {
                asleep = self.wake.wait(asleep).unwrap_or_else(PoisonError::into_inner);
            }
            idle_ticks = 0;
        }
    }
}
