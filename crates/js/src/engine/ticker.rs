//! Moves the epoch while guests run, so that each of them looks at its deadline now and then.
//! Invariant: when nothing runs, nothing wakes up.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::boot::StartError;

/// How late a deadline may be noticed.
const TICK: Duration = Duration::from_millis(4);
/// So many ticks without a guest, and the ticking stops: waking it up again costs the next step.
const IDLE: u32 = 500;

pub struct Ticker(Arc<State>);

struct State {
    running: AtomicUsize,
    asleep: Mutex<bool>,
    wake: Condvar,
    closed: AtomicBool,
}

/// A guest runs while this lives.
pub struct Running<'a>(&'a State);

impl Ticker {
    pub fn start(engine: wasmtime::Engine) -> Result<Self, StartError> {
        let state = Arc::new(State {
            running: AtomicUsize::new(0),
            asleep: Mutex::new(false),
            wake: Condvar::new(),
            closed: AtomicBool::new(false),
        });
        let ticker = Self(state.clone());
        thread::Builder::new().name("javascript-clock".to_owned()).spawn(move || state.run(&engine))?;
        Ok(ticker)
    }

    pub fn running(&self) -> Running<'_> {
        self.0.running.fetch_add(1, Ordering::SeqCst);
        let mut asleep = self.0.asleep.lock().unwrap_or_else(PoisonError::into_inner);
        if *asleep {
            *asleep = false;
            self.0.wake.notify_one();
        }
        drop(asleep);
        Running(&self.0)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.0.closed.store(true, Ordering::SeqCst);
        *self.0.asleep.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.wake.notify_one();
    }
}

impl State {
    fn run(&self, engine: &wasmtime::Engine) {
        let mut idle = 0;
        while !self.closed.load(Ordering::SeqCst) {
            thread::sleep(TICK);
            if self.running.load(Ordering::SeqCst) > 0 {
                engine.increment_epoch();
                idle = 0;
                continue;
            }
            idle += 1;
            if idle < IDLE {
                continue;
            }
            let mut asleep = self.asleep.lock().unwrap_or_else(PoisonError::into_inner);
            *asleep = self.running.load(Ordering::SeqCst) == 0 && !self.closed.load(Ordering::SeqCst);
            while *asleep {
                asleep = self.wake.wait(asleep).unwrap_or_else(PoisonError::into_inner);
            }
            idle = 0;
        }
    }
}
