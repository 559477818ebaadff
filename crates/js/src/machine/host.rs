//! What a guest may ask of us: the time, random bytes, a line on the console, a digest, a zone's offset. Nothing else.
//! Invariant: nothing here blocks, reads a file or sends anything.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::tz::TimeZoneDatabase;
use ports::scripts::{Limits, Stop, Surroundings, Turns};
use sha2::{Digest as _, Sha256, Sha384, Sha512};
use wasmtime::{Caller, Engine, InstancePre, Linker, Memory, Module, ResourceLimiter, Store, UpdateDeadline};

const MODULE: &str = "tokamak";
/// What the clock shows while an engine boots, so that all boots give the same image: 2000-01-01.
const BOOT_MS: f64 = 946_684_800_000.0;
/// `print` at this level tells of a rejection that nobody handled.
const UNHANDLED: i32 = 4;
/// A 32-bit memory cannot be larger.
const MOST_MEMORY: u64 = 4 << 30;
/// An engine may be anybody's: its boot is bounded as a run is.
const BOOT_TIME: Duration = Duration::from_secs(20);
const BOOT_MEMORY: u64 = 256 << 20;
const MOST_TABLE: usize = 100_000;

/// Why a guest was cut off. Its memory is worth nothing then.
#[derive(Debug, thiserror::Error)]
pub enum Cut {
    #[error("memory is used up")]
    Memory,
    #[error("time is up")]
    Deadline,
    #[error("it was stopped")]
    Stopped,
    #[error("it said what cannot be: {0}")]
    Lied(&'static str),
    #[error("it failed")]
    Trap(#[source] wasmtime::Error),
}

/// What belongs to one guest on our side.
pub struct Host {
    pub memory: Option<Memory>,
    pub cut: Option<Cut>,
    pub console: Console,
    /// The digest of the global that is being looked at.
    pub absorbed: Sha256,
    booting: bool,
    memory_limit: u64,
    deadline: Option<Instant>,
    stops: [Stop; 2],
    /// Who else wants the processor.
    pub turns: Option<Arc<dyn Turns>>,
    surroundings: Arc<str>,
}

#[derive(Default)]
pub struct Console {
    pub text: String,
    pub room: u64,
    pub dropped: u64,
}

impl Console {
    fn line(&mut self, prefix: &str, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        for part in [prefix, &text, "\n"] {
            let room = usize::try_from(self.room).unwrap_or(usize::MAX).saturating_sub(self.text.len());
            let fits = if self.dropped > 0 { 0 } else { part.floor_char_boundary(room) };
            self.text.push_str(&part[..fits]);
            self.dropped += (part.len() - fits) as u64;
        }
    }
}

impl Host {
    pub fn booting() -> Self {
        Self {
            memory: None,
            cut: None,
            console: Console::default(),
            absorbed: Sha256::new(),
            booting: true,
            memory_limit: BOOT_MEMORY,
            deadline: Instant::now().checked_add(BOOT_TIME),
            stops: Default::default(),
            turns: None,
            surroundings: surroundings(&Surroundings::default()),
        }
    }

    /// For one step; the deadline counts from here.
    pub fn begin(&mut self, limits: &Limits, stops: [&Stop; 2], seen: &Surroundings) {
        self.booting = false;
        self.cut = None;
        self.console = Console { room: limits.output_bytes, ..Console::default() };
        self.allow(limits.memory_bytes);
        self.deadline = Instant::now().checked_add(Duration::from_millis(limits.deadline_ms));
        self.stops = stops.map(Clone::clone);
        self.turns = None;
        self.surroundings = surroundings(seen);
    }

    pub fn allow(&mut self, memory_bytes: u64) {
        self.memory_limit = memory_bytes.min(MOST_MEMORY);
    }

    /// Whether a guest has to end, looked at now and then while it runs.
    pub fn look(&mut self) -> Option<Cut> {
        if let Some(turns) = &self.turns {
            let away = turns.pause(&|| self.stops.iter().any(Stop::is_stopped));
            self.deadline = self.deadline.and_then(|deadline| deadline.checked_add(away));
        }
        if self.stops.iter().any(Stop::is_stopped) {
            return Some(Cut::Stopped);
        }
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline).then_some(Cut::Deadline)
    }

    fn end<T>(&mut self, cut: Cut) -> wasmtime::Result<T> {
        let error = wasmtime::Error::msg(cut.to_string());
        self.cut = Some(cut);
        Err(error)
    }
}

fn surroundings(seen: &Surroundings) -> Arc<str> {
    let seen = serde_json::json!({ "headers": seen.headers, "programs": seen.programs, "fetch": seen.fetch });
    seen.to_string().into()
}

impl ResourceLimiter for Host {
    /// More than the limit ends the guest; it is not told that there is no more, so it cannot catch it.
    fn memory_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        if desired as u64 > self.memory_limit { self.end(Cut::Memory) } else { Ok(true) }
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(desired <= MOST_TABLE)
    }
}

/// A module whose imports are ours.
pub struct Linked(InstancePre<Host>);

impl Linked {
    pub fn new(engine: &Engine, module: &Module) -> wasmtime::Result<Self> {
        let mut linker = Linker::new(engine);
        define(&mut linker)?;
        Ok(Self(linker.instantiate_pre(module)?))
    }

    pub fn start(&self) -> wasmtime::Result<(Store<Host>, wasmtime::Instance)> {
        let mut store = Store::new(self.0.module().engine(), Host::booting());
        store.limiter(|host| host);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|mut context| match context.data_mut().look() {
            Some(cut) => context.data_mut().end(cut),
            None => Ok(UpdateDeadline::Continue(1)),
        });
        let instance = self.0.instantiate(&mut store)?;
        Ok((store, instance))
    }
}

fn define(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker.func_wrap(MODULE, "now", |caller: Caller<'_, Host>| now(caller.data()))?;
    linker.func_wrap(MODULE, "random", random)?;
    linker.func_wrap(MODULE, "print", print)?;
    linker.func_wrap(MODULE, "digest", digest)?;
    linker.func_wrap(MODULE, "zone", zone)?;
    linker.func_wrap(MODULE, "surroundings", tell_surroundings)?;
    linker.func_wrap(MODULE, "exhausted", |mut caller: Caller<'_, Host>| caller.data_mut().end::<()>(Cut::Memory))?;
    linker.func_wrap(MODULE, "absorb", absorb)?;
    Ok(())
}

/// The bytes that a guest points to, and our side of it.
fn bytes<'a>(caller: &'a mut Caller<'_, Host>, at: u32, length: u32) -> wasmtime::Result<(&'a mut [u8], &'a mut Host)> {
    let Some(memory) = caller.data().memory else {
        return caller.data_mut().end(Cut::Lied("it calls before it starts"));
    };
    let at = at as usize;
    if memory.data_size(&caller).checked_sub(length as usize).is_none_or(|last| at > last) {
        return caller.data_mut().end(Cut::Lied("a range outside its memory"));
    }
    let (all, host) = memory.data_and_store_mut(caller);
    Ok((&mut all[at..at + length as usize], host))
}

fn now(host: &Host) -> f64 {
    if host.booting {
        return BOOT_MS;
    }
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(BOOT_MS, |since| (since.as_micros() as f64) / 1000.0)
}

fn random(mut caller: Caller<'_, Host>, at: u32, length: u32) -> wasmtime::Result<()> {
    let (bytes, host) = bytes(&mut caller, at, length)?;
    if host.booting {
        bytes.fill(1);
        return Ok(());
    }
    getrandom::fill(bytes).map_err(wasmtime::Error::new)
}

fn print(mut caller: Caller<'_, Host>, level: i32, at: u32, length: u32) -> wasmtime::Result<()> {
    let (text, host) = bytes(&mut caller, at, length)?;
    host.console.line(if level == UNHANDLED { "Uncaught (in promise) " } else { "" }, text);
    Ok(())
}

fn digest(
    mut caller: Caller<'_, Host>,
    name: u32,
    name_length: u32,
    at: u32,
    length: u32,
    into: u32,
) -> wasmtime::Result<u32> {
    let name = bytes(&mut caller, name, name_length)?.0.to_ascii_uppercase();
    let (content, _) = bytes(&mut caller, at, length)?;
    let digest = match name.as_slice() {
        b"SHA-1" => sha1::Sha1::digest(content).to_vec(),
        b"SHA-256" => Sha256::digest(content).to_vec(),
        b"SHA-384" => Sha384::digest(content).to_vec(),
        b"SHA-512" => Sha512::digest(content).to_vec(),
        _ => return Ok(0),
    };
    let length = digest.len() as u32;
    bytes(&mut caller, into, length)?.0.copy_from_slice(&digest);
    Ok(length)
}

fn zone(mut caller: Caller<'_, Host>, at: u32, length: u32, epoch_ms: f64) -> wasmtime::Result<i32> {
    static ZONES: OnceLock<TimeZoneDatabase> = OnceLock::new();
    let (name, _) = bytes(&mut caller, at, length)?;
    let zone = str::from_utf8(name).ok().and_then(|name| ZONES.get_or_init(TimeZoneDatabase::bundled).get(name).ok());
    let moment = if epoch_ms.is_finite() { Timestamp::from_millisecond(epoch_ms as i64).ok() } else { None };
    Ok(match (zone, moment) {
        (Some(zone), Some(moment)) => zone.to_offset(moment).seconds() / 60,
        _ => i32::MIN,
    })
}

fn tell_surroundings(mut caller: Caller<'_, Host>, into: u32, room: u32) -> wasmtime::Result<u32> {
    let text = caller.data().surroundings.clone();
    let length = text.len() as u32;
    if room >= length {
        bytes(&mut caller, into, length)?.0.copy_from_slice(text.as_bytes());
    }
    Ok(length)
}

fn absorb(mut caller: Caller<'_, Host>, at: u32, length: u32) -> wasmtime::Result<()> {
    let (bytes, host) = bytes(&mut caller, at, length)?;
    host.absorbed.update(bytes);
    Ok(())
}
