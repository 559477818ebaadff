//! Steps that share processors with others: who lets others go first loses none of its own time, and keeps nothing afterwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use ports::Scripts;
use ports::scripts::{Error, Input, Outcome, Step, Stop, Surroundings, Turns};

use crate::support::{LIMITS, engine, wait};

/// Takes the processor away for so long each time it is asked.
#[derive(Default)]
struct Others {
    away: Duration,
    asked: AtomicUsize,
}

impl Turns for Others {
    fn pause(&self, stopped: &dyn Fn() -> bool) -> Duration {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let (mut waited, look) = (Duration::ZERO, Duration::from_millis(5));
        while waited < self.away && !stopped() {
            thread::sleep(look);
            waited += look;
        }
        waited
    }
}

fn step(code: &str, others: &Arc<Others>) -> Step {
    Step {
        heap: None,
        input: Input::Evaluate { code: code.to_owned() },
        limits: LIMITS,
        surroundings: Arc::new(Surroundings::default()),
        stop: Stop::default(),
        turns: Some(others.clone()),
    }
}

#[test]
fn a_deadline_is_put_off_by_what_others_take() {
    let others = Arc::new(Others { away: Duration::from_millis(50), ..Others::default() });
    let mut endless = step("for (;;);", &others);
    endless.limits.deadline_ms = 60;
    assert!(matches!(wait(engine().step(endless)), Err(Error::Deadline(60))));
    // Asked every few milliseconds of its own time; were the others' counted, it would have been asked twice.
    let asked = others.asked.load(Ordering::SeqCst);
    assert!(asked >= 4, "{asked}");
}

#[test]
fn one_that_waits_for_others_can_be_stopped() {
    let others = Arc::new(Others { away: Duration::from_secs(3_600), ..Others::default() });
    let endless = step("for (;;);", &others);
    let stop = endless.stop.clone();
    let (watched, engine) = (others.clone(), engine());
    let stopper = thread::spawn(move || {
        while watched.asked.load(Ordering::SeqCst) == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        stop.stop();
    });
    assert!(matches!(wait(engine.step(endless)), Err(Error::Stopped)));
    stopper.join().unwrap();
}

#[test]
fn a_guest_that_is_kept_keeps_nobody_s_place() {
    let (others, engine) = (Arc::new(Others::default()), engine());
    let first = wait(engine.step(step("let n = 1; n", &others))).unwrap();
    assert!(matches!(first.outcome, Outcome::Completed(_)));
    assert_eq!(Arc::strong_count(&others), 1);
    // Nor does one that goes on elsewhere, fails, or waits.
    for code in ["n += 1", "throw 1", "await new Promise(done => setTimeout(done, 5))"] {
        let next = Step { heap: Some(first.heap.key), ..step(code, &others) };
        wait(engine.step(next)).unwrap();
        assert_eq!(Arc::strong_count(&others), 1, "{code}");
    }
}
