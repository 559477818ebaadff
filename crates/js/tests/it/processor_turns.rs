//! Tests of steps that share processors with other steps: a pause does not count against the deadline, and a live guest
//! in the cache does not keep the scheduler of its last step.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use ports::Scripts;
use ports::scripts::{Error, Input, Outcome, Step, Stop, Surroundings, Turns};

use crate::support::{LIMITS, engine, wait};

/// Pauses the step for a fixed time at each check.
#[derive(Default)]
struct FixedPauses {
    pause: Duration,
    /// The number of times that the step asked for its turn.
    checks: AtomicUsize,
}

impl Turns for FixedPauses {
    fn pause(&self, stopped: &dyn Fn() -> bool) -> Duration {
        const INTERVAL: Duration = Duration::from_millis(5);
        self.checks.fetch_add(1, Ordering::SeqCst);
        let mut waited = Duration::ZERO;
        while waited < self.pause && !stopped() {
            thread::sleep(INTERVAL);
            waited += INTERVAL;
        }
        waited
    }
}

fn step_with_turns(code: &str, turns: &Arc<FixedPauses>) -> Step {
    Step {
        heap: None,
        input: Input::Evaluate { code: code.to_owned() },
        limits: LIMITS,
        surroundings: Arc::new(Surroundings::default()),
        stop: Stop::default(),
        turns: Some(turns.clone()),
    }
}

#[test]
fn a_pause_extends_the_deadline() {
    let turns = Arc::new(FixedPauses { pause: Duration::from_millis(50), ..FixedPauses::default() });
    let mut endless = step_with_turns("for (;;);", &turns);
    endless.limits.deadline_ms = 60;
    assert!(matches!(wait(engine().step(endless)), Err(Error::Deadline(60))));
    // The step is paused every few milliseconds of its own time. If the pauses counted against the deadline, the step
    // would end after two pauses.
    let checks = turns.checks.load(Ordering::SeqCst);
    assert!(checks >= 4, "{checks}");
}

#[test]
fn a_paused_step_can_be_stopped() {
    let turns = Arc::new(FixedPauses { pause: Duration::from_secs(3_600), ..FixedPauses::default() });
    let endless = step_with_turns("for (;;);", &turns);
    let stop = endless.stop.clone();
    let engine = engine();
    let stopper = thread::spawn(move || {
        while turns.checks.load(Ordering::SeqCst) == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        stop.stop();
    });
    assert!(matches!(wait(engine.step(endless)), Err(Error::Stopped)));
    stopper.join().unwrap();
}

#[test]
fn a_live_guest_holds_no_turn() {
    let turns = Arc::new(FixedPauses::default());
    let engine = engine();
    let first = wait(engine.step(step_with_turns("let n = 1; n", &turns))).unwrap();
    assert!(matches!(first.outcome, Outcome::Completed(_)));
    assert_eq!(Arc::strong_count(&turns), 1);
    // The test repeats this for a step that continues a heap, throws or waits.
    for code in ["n += 1", "throw 1", "await new Promise(done => setTimeout(done, 5))"] {
        let next = Step { heap: Some(first.heap.key), ..step_with_turns(code, &turns) };
        wait(engine.step(next)).unwrap();
        assert_eq!(Arc::strong_count(&turns), 1, "{code}");
    }
}
