//! Times a JavaScript step with a heap: on a live guest, on a heap in memory, and on a heap from stored objects.
//! Invariant: each result is printed with the shortest time of V8 for the same heap (restore and snapshot with SnapshotCreator). The
//! benchmark asserts nothing about time.

// why: a benchmark has no caller that could handle an error, so it stops at the line that failed.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use std::sync::{Arc, LazyLock};
use std::time::Instant;

use base::Digest;
use js::{Engine, Settings};
use ports::Scripts;
use ports::scripts::{Completion, Input, Limits, Outcome, Step, Stepped, Stop, Surroundings};
use tokio::runtime::{Builder, Runtime};

/// The same allocator as in the binary `tokamak`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The milliseconds and the stored bytes of one step with V8 10.2 on the small heap, measured on a machine of the same type.
const V8_SMALL: (f64, f64) = (15.6, 466_000.0);
/// The same numbers for the large heap.
const V8_LARGE: (f64, f64) = (130.0, 2_460_000.0);
const ROUNDS: usize = 400;

const SMALL: &str = "let n = 0; const next = () => ++n";
const LARGE: &str = "let n = 0; const next = () => ++n; const rows = []; for (let i = 0; i < 20000; i++) rows.push({id: i, name: 'row number ' + i, tags: ['a', 'b'], nested: {score: i / 3}})";

fn main() {
    let code = tempfile::tempdir().unwrap();
    let settings = Settings { code_cache: Some(code.path().join("code")), ..Settings::default() };
    let started = Instant::now();
    drop(Engine::start(&settings).unwrap());
    println!("start, compiling the guest       {:>9.1} ms", ms(started));
    let started = Instant::now();
    let engine = Engine::start(&settings).unwrap();
    println!("start, compiled before           {:>9.1} ms", ms(started));

    let bench = EngineBench { engine: Arc::new(engine), settings };
    bench.fresh();
    bench.heap("small heap", SMALL, "next()", V8_SMALL);
    bench.heap("20,000 objects", LARGE, "rows[n * 37 % rows.length].nested.score += 1; next()", V8_LARGE);
    bench.resident();
    bench.compute();
}

/// The engine to measure, and the settings from which further engines are started.
struct EngineBench {
    engine: Arc<Engine>,
    settings: Settings,
}

/// The milliseconds of one round.
struct RoundTime {
    /// The median of the wall time.
    wall: f64,
    /// The mean of the processor time.
    processor: f64,
}

impl EngineBench {
    /// Measures a step on a heap that does not exist yet.
    fn fresh(&self) {
        let time = rounds(ROUNDS, || drop(step(&self.engine, None, "1 + 1")));
        println!("fresh heap and eval              {:>9.3} ms  ({:.3} of processor)", time.wall, time.processor);
    }

    /// Measures steps on one heap: on a live guest, on a heap in memory, and on a heap from stored objects.
    fn heap(&self, what: &str, make: &str, work: &str, v8: (f64, f64)) {
        let made = step(&self.engine, None, make);
        println!("\n{what}: memory of {:.1} MB", made.heap.memory_bytes as f64 / 1e6);
        let mut head = made.heap.key;
        let mut bytes = Vec::new();
        let hot = rounds(ROUNDS, || {
            let stepped = step(&self.engine, Some(head), work);
            bytes.push(stepped.heap.object.len() as f64);
            head = stepped.heap.key;
        });
        hot.row("hot step", "0.15", v8.0);
        // The live guest has another heap by now, and all other guests were used recently, so a new guest maps the image.
        let cached = rounds(ROUNDS / 4, || drop(step(&self.engine, Some(made.heap.key), work)));
        cached.row("cached, not alive, new guest", "0.5", v8.0);
        self.moved_guest(make, work).row("cached, not alive, moved guest", "0.5", v8.0);
        let whole = wait(self.engine.standalone_object(head)).unwrap();
        println!("  whole heap as one object       {:>9.0} bytes", whole.len());
        self.cold(head, &whole, work).row("from a stored object, verified", "20", v8.0);
        for (which, bytes) in [("mean", bytes.iter().sum::<f64>() / bytes.len() as f64), ("median", median(&mut bytes))]
        {
            println!(
                "  stored a step, {which:<15} {bytes:>9.0} bytes  {:>6.0}x less than V8  (goal 4,096)",
                v8.1 / bytes
            );
        }
    }

    /// Times a step while all guests are in use, so that a guest of another heap is reused for this heap.
    fn moved_guest(&self, make: &str, work: &str) -> RoundTime {
        const LIVE: usize = 4;
        let engine = Arc::new(Engine::start(&Settings { live_guests: LIVE, ..self.settings.clone() }).unwrap());
        let made = step(&engine, None, make).heap.key;
        (0..LIVE).for_each(|_| drop(step(&engine, Some(made), work)));
        rounds(ROUNDS / 4, || drop(step(&engine, Some(made), work)))
    }

    /// Measures a step on an engine that loads the heap from its stored object first.
    fn cold(&self, key: Digest, whole: &[u8], work: &str) -> RoundTime {
        let engines: Vec<_> = (0..8).map(|_| Engine::start(&self.settings).unwrap()).collect();
        let mut fresh = engines.iter();
        rounds(engines.len(), || {
            let engine = fresh.next().unwrap();
            wait(engine.admit(key, vec![whole.to_vec()])).unwrap();
            step(engine, Some(key), work);
        })
    }

    /// Measures the memory of many sessions of a few steps each, all with live guests.
    fn resident(&self) {
        const SESSIONS: usize = 200;
        // The guests of earlier measurements are dropped, because they would be evicted during this measurement.
        self.engine.forget();
        let before = resident_bytes();
        for session in 0..SESSIONS {
            // Each session has another constant, because equal heaps would be stored only once.
            let mut head = step(&self.engine, None, &format!("{SMALL}; const session = {session}")).heap.key;
            for _ in 0..4 {
                head = step(&self.engine, Some(head), "next()").heap.key;
            }
        }
        let each = (resident_bytes() - before) / SESSIONS as f64 / 1e6;
        println!("\nresident, a small session that is alive {each:>6.2} MB  (goal 1)");
    }

    /// Measures the time of a program in the guest, in the same JavaScript engine as a native binary, and in Node. They run in turns, so that other work
    /// on the machine affects all of them.
    fn compute(&self) {
        println!();
        for (what, code) in COMPUTE {
            let mut guest = Vec::new();
            let mut others: Vec<(&str, Vec<f64>)> = Vec::new();
            for _ in 0..5 {
                let started = Instant::now();
                step(&self.engine, None, code);
                guest.push(ms(started));
                for (name, time) in other_engines(code) {
                    match others.iter_mut().find(|(other, _)| *other == name) {
                        Some((_, times)) => times.push(time),
                        None => others.push((name, vec![time])),
                    }
                }
            }
            let guest = median(&mut guest);
            println!("{what:<40} {guest:>8.0} ms");
            for (name, mut times) in others {
                let time = median(&mut times);
                println!("  {name:<38} {time:>8.0} ms  the guest takes {:.2} times as long", guest / time);
            }
        }
    }
}

/// The programs for `compute`, each with its title: a loop over numbers, and a program with objects, strings and sorting.
const COMPUTE: [(&str, &str); 2] = [
    ("30,000,000 rounds of `s += i % 7`", "var s = 0; for (var i = 0; i < 3e7; i++) s += i % 7; s"),
    (
        "rows made, grouped, sorted, to text",
        "var total = 0; for (var k = 0; k < 12; k++) { var rows = []; for (var i = 0; i < 20000; i++) rows.push({id: i, name: 'row ' + i * 7919 % 20000, score: i * 31 % 997}); var by = new Map(); for (var row of rows) by.set(row.score, (by.get(row.score) ?? 0) + row.id); rows.sort((a, b) => a.name < b.name ? -1 : 1); total += JSON.stringify(rows.filter(row => /9$/.test(row.name))).length + by.size; } total",
    ),
];

/// Runs code in each of the other engines that is installed, and returns the milliseconds that the code measures. `scripts/qjs.sh` builds
/// the first of these engines.
fn other_engines(code: &str) -> Vec<(&'static str, f64)> {
    let file = tempfile::Builder::new().suffix(".js").tempfile().unwrap();
    let timed = format!("const began = Date.now(); {code}; console.log(Date.now() - began)");
    std::fs::write(file.path(), timed).unwrap();
    let quickjs = std::env::var("TOKAMAK_QJS").unwrap_or_default();
    let all = [
        ("native QuickJS-NG (goal at most 2.2)", quickjs.as_str(), "--script"),
        ("Node without JIT", "node", "--jitless"),
        ("Node", "node", "--no-warnings"),
    ];
    let run = |(name, program, argument): (&'static str, &str, &str)| {
        let output = std::process::Command::new(program).arg(argument).arg(file.path()).output().ok()?;
        Some((name, String::from_utf8_lossy(&output.stdout).trim().parse().ok()?))
    };
    all.into_iter().filter(|(_, program, _)| !program.is_empty()).filter_map(run).collect()
}

/// Repeats the work `count` times, and returns the time of one round.
fn rounds(count: usize, mut work: impl FnMut()) -> RoundTime {
    let before = processor_ms();
    let mut times: Vec<f64> = (0..count)
        .map(|_| {
            let started = Instant::now();
            work();
            ms(started)
        })
        .collect();
    RoundTime { wall: median(&mut times), processor: (processor_ms() - before) / count as f64 }
}

impl RoundTime {
    fn row(&self, what: &str, goal: &str, v8: f64) {
        let Self { wall, processor } = self;
        println!(
            "  {what:<30} {wall:>9.3} ms  ({processor:.3} of processor)  {:>5.0}x faster than V8  (goal {goal} ms)",
            v8 / wall
        );
    }
}

fn step(engine: &Engine, heap: Option<Digest>, code: &str) -> Stepped {
    let step = Step {
        heap,
        input: Input::Evaluate { code: code.to_owned() },
        limits: Limits { memory_bytes: 256 << 20, deadline_ms: 60_000, output_bytes: 1 << 20 },
        surroundings: Arc::new(Surroundings::default()),
        stop: Stop::default(),
        turns: None,
    };
    let stepped = wait(engine.step(step)).unwrap();
    match stepped.outcome {
        Outcome::Completed(Completion::Json(_) | Completion::Undefined) => stepped,
        other => panic!("{code} ended with {other:?}"),
    }
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Builder::new_current_thread().build().unwrap());
    RUNTIME.block_on(future)
}

/// Returns the processor time of all threads of this process so far, in milliseconds. Other work on the machine does not change this time.
fn processor_ms() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let schedules = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok());
    let on_cpu = |text: String| text.split(' ').next().and_then(|first| first.parse::<f64>().ok());
    schedules.filter_map(on_cpu).sum::<f64>() / 1e6
}

/// Returns the private memory and the page tables of this process in bytes. Pages of an image that several guests map are not included,
/// because the kernel counts such pages once for each guest.
fn resident_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let kilobytes = |line: &str| {
        let value = line.strip_prefix("RssAnon:").or_else(|| line.strip_prefix("VmPTE:"))?;
        value.trim().strip_suffix(" kB")?.parse::<f64>().ok()
    };
    status.lines().filter_map(kilobytes).sum::<f64>() * 1024.0
}

fn ms(started: Instant) -> f64 {
    started.elapsed().as_secs_f64() * 1e3
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
