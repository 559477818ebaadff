//! Times a stateful JavaScript step in this process: on a live guest, on a heap in memory, and from stored objects.
//! Invariant: each number is printed next to the least time that V8 needs for the same heap (restore and snapshot with its own
//! SnapshotCreator); nothing is asserted about time.

// why: a benchmark has no caller that could handle an error, so it stops at the line that failed.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use std::sync::{Arc, LazyLock};
use std::time::Instant;

use base::Digest;
use js::{Engine, Settings};
use ports::Scripts;
use ports::scripts::{Completion, Input, Limits, Outcome, Step, Stepped, Stop, Surroundings};
use tokio::runtime::{Builder, Runtime};

/// The allocator of the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Milliseconds and bytes for each step, measured on a machine of this kind with V8 10.2.
const V8_SMALL: (f64, f64) = (15.6, 466_000.0);
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

/// The engine to measure, and its settings for more engines.
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

    /// Measures steps on one heap: on a live guest, on a heap in memory, and from stored objects.
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
        // The live guest has left this heap, and no other guest has been idle for long, so the image is mapped anew.
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

    /// Times a step when all guests are in use: a guest of another heap is moved to this one.
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

    /// Times sessions of a few steps each, all with live guests.
    fn resident(&self) {
        const SESSIONS: usize = 200;
        // Guests of earlier measurements would be evicted for these.
        self.engine.forget();
        let before = resident_bytes();
        for session in 0..SESSIONS {
            // Equal programs would make equal heaps, and only one of them would be stored.
            let mut head = step(&self.engine, None, &format!("{SMALL}; const session = {session}")).heap.key;
            for _ in 0..4 {
                head = step(&self.engine, Some(head), "next()").heap.key;
            }
        }
        let each = (resident_bytes() - before) / SESSIONS as f64 / 1e6;
        println!("\nresident, a small session that is alive {each:>6.2} MB  (goal 1)");
    }

    /// Times the guest, the same sources built for this machine, and Node, in turns. Other work on the machine then affects all
    /// of them alike.
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

/// The measured programs: a loop over numbers, and a program with objects, strings, sorting and text.
const COMPUTE: [(&str, &str); 2] = [
    ("30,000,000 rounds of `s += i % 7`", "var s = 0; for (var i = 0; i < 3e7; i++) s += i % 7; s"),
    (
        "rows made, grouped, sorted, to text",
        "var total = 0; for (var k = 0; k < 12; k++) { var rows = []; for (var i = 0; i < 20000; i++) rows.push({id: i, name: 'row ' + i * 7919 % 20000, score: i * 31 % 997}); var by = new Map(); for (var row of rows) by.set(row.score, (by.get(row.score) ?? 0) + row.id); rows.sort((a, b) => a.name < b.name ? -1 : 1); total += JSON.stringify(rows.filter(row => /9$/.test(row.name))).length + by.size; } total",
    ),
];

/// Runs code in each other engine that is installed, and returns the milliseconds that it measures itself. `scripts/qjs.sh` builds the
/// first engine.
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

/// Repeats the work and returns the time of a round.
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

/// Returns the processor time of all threads so far in milliseconds. Other work on the machine does not change it.
fn processor_ms() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let schedules = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok());
    let on_cpu = |text: String| text.split(' ').next().and_then(|first| first.parse::<f64>().ok());
    schedules.filter_map(on_cpu).sum::<f64>() / 1e6
}

/// Returns the private memory of this process with its page tables. Pages of an image that several guests map are not included,
/// because the kernel would count them for each guest.
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
