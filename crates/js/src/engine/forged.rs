//! Heaps that verify and are wrong: their objects are well made, what they hold is not what any program left.
//! Invariant: such a heap ends as an error or as some answer, within its bounds, and harms no other.

use std::sync::Arc;

use ports::scripts::{Input, Limits, Step, Stop, Surroundings};

use crate::heaps::{Held, Page};
use crate::image::{PAGE, ZERO_PAGE};

use super::workers::{Bench, on_a_deep_stack};
use super::{Core, Engine, Settings, chain};

const LIMITS: Limits = Limits { memory_bytes: 32 << 20, deadline_ms: 40, output_bytes: 1000 };

fn step(heap: Option<base::Digest>, input: Input) -> Step {
    Step {
        heap,
        input,
        limits: LIMITS,
        surroundings: Arc::new(Surroundings::default()),
        stop: Stop::default(),
        turns: None,
    }
}

fn evaluate(code: &str) -> Input {
    Input::Evaluate { code: code.to_owned() }
}

/// Numbers that look random and are the same in each run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % most as u64) as usize
    }
}

/// Some bytes of some pages changed, and all of it signed as it should be.
fn forge(core: &Core, bench: &mut Bench, held: &Arc<Held>, draw: &mut Draw) -> (base::Digest, Vec<u8>) {
    let pages: Vec<u32> = (0..held.image.pages()).filter(|at| held.page(*at) != ZERO_PAGE).collect();
    let mut chosen: Vec<u32> = (0..1 + draw.below(6)).map(|_| pages[draw.below(pages.len())]).collect();
    chosen.sort_unstable();
    chosen.dedup();
    let changed: Vec<_> = chosen
        .into_iter()
        .map(|at| {
            let mut page = held.page(at).to_vec();
            for _ in 0..1 + draw.below(20) {
                page[draw.below(PAGE)] ^= 1 + draw.below(255) as u8;
            }
            (at, Page::copy(core.shelf.ledger(), &page))
        })
        .collect();
    let contents = changed.iter().map(|(at, page)| (*at, page.bytes()));
    let image = held.image.with_changes(contents, held.image.pages()).unwrap();
    let next = held.next(core.shelf.ledger(), image, &changed);
    (next.key(), chain::object(&mut bench.codec, held, &next).unwrap())
}

#[test]
fn a_heap_that_nobody_made_harms_nobody() {
    let engine = Engine::start(&Settings::default()).unwrap();
    let core = &engine.core;
    let outcome = on_a_deep_stack(|| {
        let mut bench = Bench::new()?;
        let made = core.step(&mut bench, step(None, evaluate("const rows = []; for (let i = 0; i < 500; i++) rows.push({i, t: 't' + i}); await new Promise((done) => setTimeout(done, 1))"))).unwrap();
        let held = core.held(made.heap.key).unwrap();
        let mut draw = Draw(0x2545_f491_4f6c_dd1d);
        let mut ended = 0;
        for round in 0..150 {
            let (key, object) = forge(core, &mut bench, &held, &mut draw);
            core.admit(&mut bench, key, &[object]).unwrap();
            let input = if round % 2 == 0 {
                evaluate("rows.map((row) => row.i + row.t).join() + Object.keys(globalThis)")
            } else {
                Input::Settle { answers: vec![(1, Ok(serde_json::Value::Null))] }
            };
            ended += u32::from(core.step(&mut bench, step(Some(key), input)).is_err());
            if round < 4 {
                let _ = core.globals(key);
            }
        }
        let healthy = core.step(&mut bench, step(Some(made.heap.key), evaluate("rows.length"))).unwrap();
        assert!(matches!(healthy.outcome, ports::scripts::Outcome::Completed(_)));
        Ok(ended)
    });
    assert!(outcome.unwrap() > 0, "no change was ever noticed: nothing was forged");
}
