//! Tests of forged heaps. The object of a forged heap is valid, but no script has made its content.
//! Invariant: a step on a forged heap ends with an error or an answer, within its limits, and affects no other heap.

use std::sync::Arc;

use ports::scripts::{Input, Limits, Step, Stop, Surroundings};

use crate::heaps::{HeapPage, LoadedHeap};
use crate::image::{PAGE_BYTES, ZERO_PAGE};

use super::workers::{WorkerState, on_a_deep_stack};
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

/// Pseudo-random numbers that are the same in each run (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// Changes some bytes of some pages, and encodes the result as a valid object.
fn forge(
    core: &Core,
    worker: &mut WorkerState,
    heap: &Arc<LoadedHeap>,
    random: &mut Random,
) -> (base::Digest, Vec<u8>) {
    let pages: Vec<u32> = (0..heap.image.pages()).filter(|at| heap.page(*at) != ZERO_PAGE).collect();
    let mut chosen: Vec<u32> = (0..1 + random.below(6)).map(|_| pages[random.below(pages.len())]).collect();
    chosen.sort_unstable();
    chosen.dedup();
    let changed: Vec<_> = chosen
        .into_iter()
        .map(|at| {
            let mut page = heap.page(at).to_vec();
            for _ in 0..1 + random.below(20) {
                page[random.below(PAGE_BYTES)] ^= 1 + random.below(255) as u8;
            }
            (at, HeapPage::copy_of(core.heaps.pool(), &page))
        })
        .collect();
    let contents = changed.iter().map(|(at, page)| (*at, page.bytes()));
    let image = heap.image.with_changes(contents, heap.image.pages()).unwrap();
    let forged = heap.with_changes(core.heaps.pool(), image, &changed);
    (forged.key(), chain::encode_object(&mut worker.codec, heap, &forged).unwrap())
}

#[test]
fn a_forged_heap_affects_no_other_heap() {
    let engine = Engine::start(&Settings::default()).unwrap();
    let core = &engine.core;
    let failed_steps = on_a_deep_stack(|| {
        let mut worker = WorkerState::new()?;
        let made = core.step(&mut worker, step(None, evaluate("const rows = []; for (let i = 0; i < 500; i++) rows.push({i, t: 't' + i}); await new Promise((done) => setTimeout(done, 1))"))).unwrap();
        let heap = core.loaded_heap(made.heap.key).unwrap();
        let mut random = Random(0x2545_f491_4f6c_dd1d);
        let mut failed_steps = 0;
        for round in 0..150 {
            let (key, object) = forge(core, &mut worker, &heap, &mut random);
            core.admit(&mut worker, key, &[object]).unwrap();
            let input = if round % 2 == 0 {
                evaluate("rows.map((row) => row.i + row.t).join() + Object.keys(globalThis)")
            } else {
                Input::Settle { answers: vec![(1, Ok(serde_json::Value::Null))] }
            };
            failed_steps += u32::from(core.step(&mut worker, step(Some(key), input)).is_err());
            if round < 4 {
                let _ = core.globals(key);
            }
        }
        let healthy = core.step(&mut worker, step(Some(made.heap.key), evaluate("rows.length"))).unwrap();
        assert!(matches!(healthy.outcome, ports::scripts::Outcome::Completed(_)));
        Ok(failed_steps)
    });
    assert!(failed_steps.unwrap() > 0, "no change had any effect, so nothing was forged");
}
