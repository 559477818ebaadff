//! What a stateful JavaScript step costs in process: on a guest that is alive, on a heap in memory, from stored objects.
//! Invariant: each number stands beside V8's floor for the same heap (restore and snapshot with its own SnapshotCreator);
//! nothing is asserted about time.

// why: a benchmark has no caller to hand an error to; it stops with the line that failed.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use std::sync::{Arc, LazyLock};
use std::time::Instant;

use base::Digest;
use js::{Engine, Settings};
use ports::Scripts;
use ports::scripts::{Completion, Input, Limits, Outcome, Step, Stepped, Stop, Surroundings};
use tokio::runtime::{Builder, Runtime};

/// Milliseconds and bytes a step, measured on this kind of machine with V8 10.2.
const V8_SMALL: (f64, f64) = (15.6, 466_000.0);
const V8_LARGE: (f64, f64) = (155.0, 2_460_000.0);
const ROUNDS: usize = 400;

const SMALL: &str = "let n = 0; const next = () => ++n";
const LARGE: &str = "let n = 0; const next = () => ++n; const rows = []; for (let i = 0; i < 20000; i++) rows.push({id: i, name: 'row number ' + i, tags: ['a', 'b'], nested: {score: i / 3}})";

fn main() {
    let code = tempfile::tempdir().unwrap();
    let settings = Settings { code: Some(code.path().join("code")), ..Settings::default() };
    let started = Instant::now();
    drop(Engine::start(&settings).unwrap());
    println!("start, compiling the guest       {:>9.1} ms", ms(started));
    let started = Instant::now();
    let engine = Engine::start(&settings).unwrap();
    println!("start, compiled before           {:>9.1} ms", ms(started));

    let run = Run { engine: Arc::new(engine), settings };
    run.fresh();
    run.heap("small heap", SMALL, "next()", V8_SMALL);
    run.heap("20,000 objects", LARGE, "rows[n * 37 % rows.length].nested.score += 1; next()", V8_LARGE);
    run.compute();
}

struct Run {
    engine: Arc<Engine>,
    settings: Settings,
}

impl Run {
    fn fresh(&self) {
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let started = Instant::now();
            step(&self.engine, None, "1 + 1");
            times.push(ms(started));
        }
        println!("fresh heap and eval              {:>9.3} ms", median(&mut times));
    }

    fn heap(&self, what: &str, make: &str, work: &str, v8: (f64, f64)) {
        let made = step(&self.engine, None, make);
        println!("\n{what}: memory of {:.1} MB", made.heap.memory_bytes as f64 / 1e6);
        let mut objects = vec![made.heap.object.to_vec()];
        let mut head = made.heap.key;
        let (mut times, mut bytes) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let started = Instant::now();
            let stepped = step(&self.engine, Some(head), work);
            times.push(ms(started));
            bytes.push(stepped.heap.object.len() as f64);
            head = stepped.heap.key;
        }
        row("hot step", median(&mut times), "0.15", v8.0);
        let mut times = Vec::new();
        for _ in 0..ROUNDS / 4 {
            // The guest that is alive has gone on from here, so the image is mapped anew.
            let started = Instant::now();
            step(&self.engine, Some(made.heap.key), work);
            times.push(ms(started));
        }
        row("cached, not alive", median(&mut times), "0.5", v8.0);
        let whole = wait(self.engine.whole(head)).unwrap();
        println!("  whole heap as one object       {:>9.0} bytes", whole.len());
        objects.clear();
        objects.push(whole);
        row("from stored objects, verified", self.cold(head, &objects, work), "20", v8.0);
        let mean = bytes.iter().sum::<f64>() / bytes.len() as f64;
        println!("  stored a step, median          {:>9.0} bytes  {:>8.0}x less than V8", median(&mut bytes), v8.1 / median(&mut bytes));
        println!("  stored a step, mean            {mean:>9.0} bytes  {:>8.0}x less than V8  (goal 4,096)", v8.1 / mean);
    }

    fn cold(&self, key: Digest, objects: &[Vec<u8>], work: &str) -> f64 {
        let mut times = Vec::new();
        for _ in 0..5 {
            let engine = Engine::start(&self.settings).unwrap();
            let started = Instant::now();
            wait(engine.admit(key, objects.to_vec())).unwrap();
            step(&engine, Some(key), work);
            times.push(ms(started));
        }
        median(&mut times)
    }

    fn compute(&self) {
        let mut times = Vec::new();
        for _ in 0..3 {
            let started = Instant::now();
            step(&self.engine, None, "let s = 0; for (let i = 0; i < 3e7; i++) s += i % 7; s");
            times.push(ms(started));
        }
        println!("\n30,000,000 rounds of `s += i % 7` {:>8.0} ms  (native QuickJS 800, Node without JIT 430, with 50)", median(&mut times));
    }
}

fn step(engine: &Engine, heap: Option<Digest>, code: &str) -> Stepped {
    let step = Step {
        heap,
        input: Input::Evaluate { code: code.to_owned() },
        limits: Limits { memory_bytes: 256 << 20, deadline_ms: 60_000, output_bytes: 1 << 20 },
        surroundings: Arc::new(Surroundings::default()),
        stop: Stop::default(),
    };
    let stepped = wait(engine.step(step)).unwrap();
    match stepped.outcome {
        Outcome::Completed(Completion::Json(_) | Completion::Undefined) => stepped,
        other => panic!("{code} came to {other:?}"),
    }
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Builder::new_current_thread().build().unwrap());
    RUNTIME.block_on(future)
}

fn row(what: &str, took: f64, goal: &str, v8: f64) {
    println!("  {what:<30} {took:>9.3} ms  {:>8.0}x faster than V8  (goal {goal} ms)", v8 / took);
}

fn ms(started: Instant) -> f64 {
    started.elapsed().as_secs_f64() * 1e3
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
