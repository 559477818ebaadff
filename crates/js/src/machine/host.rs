//! The functions that a guest can call on the host: time, random bytes, console lines, digests, time zones, and few
//! others.
//! Invariant: no function blocks, opens a file or sends anything.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::tz::TimeZoneDatabase;
use ports::scripts::{Limits, Stop, Surroundings, Turns};
use sha2::{Digest as _, Sha256, Sha384, Sha512};
use wasmtime::{Caller, Engine, InstancePre, Linker, Memory, Module, ResourceLimiter, Store, UpdateDeadline};

/// The module name of the guest's imports.
const MODULE: &str = "tokamak";
/// The time that a guest reads while it boots, 2000-01-01, so that each boot gives the same image.
const BOOT_MS: f64 = 946_684_800_000.0;
/// The byte that a guest reads as random bytes while it boots, for the same reason.
const BOOT_RANDOM_BYTE: u8 = 1;
/// The level of `print` for a rejection that no code handled.
const UNHANDLED_REJECTION: i32 = 4;
/// The largest 32-bit memory.
const MAX_MEMORY_BYTES: u64 = 4 << 30;
/// The limits of a boot. An engine can come from outside, so its boot is bounded like a run.
const BOOT_DEADLINE: Duration = Duration::from_secs(20);
const BOOT_MEMORY_BYTES: u64 = 256 << 20;
const MAX_TABLE_ENTRIES: usize = 100_000;

/// Why a call into a guest failed. The guest's memory is unusable afterwards.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    #[error("the memory limit was reached")]
    Memory,
    #[error("the deadline was reached")]
    Deadline,
    #[error("the step was stopped")]
    Stopped,
    /// The guest violates the interface. Its code or its image was not made by our build.
    #[error("the guest is invalid: {0}")]
    Invalid(&'static str),
    #[error("the guest trapped")]
    Trap(#[source] wasmtime::Error),
}

/// The host's state for one guest.
pub struct HostState {
    /// The guest's memory. `None` until the instance exists.
    pub memory: Option<Memory>,
    /// Why the host ended the guest. The caller of the guest only gets a trap from Wasmtime.
    pub error: Option<GuestError>,
    pub console: Console,
    /// The digest of the global that is examined.
    pub global_digest: Sha256,
    /// Whether the guest boots: time and random bytes are fixed then.
    booting: bool,
    /// The size that the memory may grow to.
    memory_limit: u64,
    deadline: Option<Instant>,
    /// Either of these ends the step: the step's own stop, and the stop of the whole engine.
    stops: [Stop; 2],
    /// Asked regularly whether other steps go first. `None` outside of steps.
    pub turns: Option<Arc<dyn Turns>>,
    /// The surroundings as JSON, which the guest reads each time anew so that no heap contains them.
    surroundings: Arc<str>,
}

/// The console output of a step.
#[derive(Default)]
pub struct Console {
    pub text: String,
    /// The largest length of `text`.
    pub limit_bytes: u64,
    /// The number of bytes beyond the limit.
    pub dropped_bytes: u64,
}

impl Console {
    fn add_line(&mut self, prefix: &str, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        for part in [prefix, &text, "\n"] {
            let room = usize::try_from(self.limit_bytes).unwrap_or(usize::MAX).saturating_sub(self.text.len());
            // After the first dropped byte nothing is added, so that the text is a prefix of the whole output.
            let kept = if self.dropped_bytes > 0 { 0 } else { part.floor_char_boundary(room) };
            self.text.push_str(&part[..kept]);
            self.dropped_bytes += (part.len() - kept) as u64;
        }
    }
}

impl HostState {
    pub fn booting() -> Self {
        Self {
            memory: None,
            error: None,
            console: Console::default(),
            global_digest: Sha256::new(),
            booting: true,
            memory_limit: BOOT_MEMORY_BYTES,
            deadline: Instant::now().checked_add(BOOT_DEADLINE),
            stops: Default::default(),
            turns: None,
            surroundings: surroundings_json(&Surroundings::default()),
        }
    }

    /// Prepares the state for one step. The deadline counts from here.
    pub fn begin_step(&mut self, limits: &Limits, stops: [&Stop; 2], surroundings: &Surroundings) {
        self.booting = false;
        self.error = None;
        self.console = Console { limit_bytes: limits.output_bytes, ..Console::default() };
        self.set_memory_limit(limits.memory_bytes);
        self.deadline = Instant::now().checked_add(Duration::from_millis(limits.deadline_ms));
        self.stops = stops.map(Clone::clone);
        self.turns = None;
        self.surroundings = surroundings_json(surroundings);
    }

    pub fn set_memory_limit(&mut self, memory_bytes: u64) {
        self.memory_limit = memory_bytes.min(MAX_MEMORY_BYTES);
    }

    /// Lets other steps go first if it is their turn, and returns an error if the guest must end. Called at each epoch
    /// while the guest runs.
    pub fn check_limits(&mut self) -> Option<GuestError> {
        if let Some(turns) = &self.turns {
            let paused = turns.pause(&|| self.stops.iter().any(Stop::is_stopped));
            // Time that other steps used does not count against this one.
            self.deadline = self.deadline.and_then(|deadline| deadline.checked_add(paused));
        }
        if self.stops.iter().any(Stop::is_stopped) {
            return Some(GuestError::Stopped);
        }
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline).then_some(GuestError::Deadline)
    }

    /// Records the reason and returns the error that makes Wasmtime end the guest.
    fn end_guest<T>(&mut self, error: GuestError) -> wasmtime::Result<T> {
        let trap = wasmtime::Error::msg(error.to_string());
        self.error = Some(error);
        Err(trap)
    }
}

fn surroundings_json(surroundings: &Surroundings) -> Arc<str> {
    let json = serde_json::json!({
        "headers": surroundings.headers,
        "programs": surroundings.programs,
        "fetch": surroundings.fetch,
    });
    json.to_string().into()
}

impl ResourceLimiter for HostState {
    /// Growth beyond the limit ends the guest. A refusal would reach the code as an exception, which the code could
    /// catch.
    fn memory_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        if desired as u64 > self.memory_limit { self.end_guest(GuestError::Memory) } else { Ok(true) }
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(desired <= MAX_TABLE_ENTRIES)
    }
}

/// A module whose imports are linked to the functions of this file.
pub struct LinkedModule(InstancePre<HostState>);

impl LinkedModule {
    pub fn new(engine: &Engine, module: &Module) -> wasmtime::Result<Self> {
        let mut linker = Linker::new(engine);
        define_functions(&mut linker)?;
        Ok(Self(linker.instantiate_pre(module)?))
    }

    pub fn instantiate(&self) -> wasmtime::Result<(Store<HostState>, wasmtime::Instance)> {
        let mut store = Store::new(self.0.module().engine(), HostState::booting());
        store.limiter(|host| host);
        // Wasmtime checks the epoch in loops and at function entries. The ticker increments it while guests run.
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|mut context| match context.data_mut().check_limits() {
            Some(error) => context.data_mut().end_guest(error),
            None => Ok(UpdateDeadline::Continue(1)),
        });
        let instance = self.0.instantiate(&mut store)?;
        Ok((store, instance))
    }
}

fn define_functions(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    linker.func_wrap(MODULE, "now", |caller: Caller<'_, HostState>| now(caller.data()))?;
    linker.func_wrap(MODULE, "random", random)?;
    linker.func_wrap(MODULE, "print", print)?;
    linker.func_wrap(MODULE, "digest", digest)?;
    linker.func_wrap(MODULE, "zone", zone)?;
    linker.func_wrap(MODULE, "surroundings", copy_surroundings)?;
    linker.func_wrap(MODULE, "exhausted", |mut caller: Caller<'_, HostState>| {
        caller.data_mut().end_guest::<()>(GuestError::Memory)
    })?;
    linker.func_wrap(MODULE, "absorb", absorb)?;
    Ok(())
}

/// Returns the range of the guest's memory that the guest points to, and the host's state.
fn guest_bytes<'a>(
    caller: &'a mut Caller<'_, HostState>,
    at: u32,
    length: u32,
) -> wasmtime::Result<(&'a mut [u8], &'a mut HostState)> {
    let Some(memory) = caller.data().memory else {
        return caller.data_mut().end_guest(GuestError::Invalid("it calls the host before it is started"));
    };
    let at = at as usize;
    if memory.data_size(&caller).checked_sub(length as usize).is_none_or(|last_start| at > last_start) {
        return caller.data_mut().end_guest(GuestError::Invalid("it points outside its memory"));
    }
    let (all, host) = memory.data_and_store_mut(caller);
    Ok((&mut all[at..at + length as usize], host))
}

fn now(host: &HostState) -> f64 {
    if host.booting {
        return BOOT_MS;
    }
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(BOOT_MS, |since| (since.as_micros() as f64) / 1000.0)
}

fn random(mut caller: Caller<'_, HostState>, at: u32, length: u32) -> wasmtime::Result<()> {
    let (bytes, host) = guest_bytes(&mut caller, at, length)?;
    if host.booting {
        bytes.fill(BOOT_RANDOM_BYTE);
        return Ok(());
    }
    getrandom::fill(bytes).map_err(wasmtime::Error::new)
}

fn print(mut caller: Caller<'_, HostState>, level: i32, at: u32, length: u32) -> wasmtime::Result<()> {
    let (text, host) = guest_bytes(&mut caller, at, length)?;
    host.console.add_line(if level == UNHANDLED_REJECTION { "Uncaught (in promise) " } else { "" }, text);
    Ok(())
}

/// Writes a digest to `target` and returns its length, or 0 if the algorithm is unknown.
fn digest(
    mut caller: Caller<'_, HostState>,
    name: u32,
    name_length: u32,
    at: u32,
    length: u32,
    target: u32,
) -> wasmtime::Result<u32> {
    let name = guest_bytes(&mut caller, name, name_length)?.0.to_ascii_uppercase();
    let (content, _) = guest_bytes(&mut caller, at, length)?;
    let digest = match name.as_slice() {
        b"SHA-1" => sha1::Sha1::digest(content).to_vec(),
        b"SHA-256" => Sha256::digest(content).to_vec(),
        b"SHA-384" => Sha384::digest(content).to_vec(),
        b"SHA-512" => Sha512::digest(content).to_vec(),
        _ => return Ok(0),
    };
    let length = digest.len() as u32;
    guest_bytes(&mut caller, target, length)?.0.copy_from_slice(&digest);
    Ok(length)
}

/// Returns the offset of an IANA zone at a time, in minutes east of UTC, or `i32::MIN` if there is no such zone or
/// time.
fn zone(mut caller: Caller<'_, HostState>, at: u32, length: u32, epoch_ms: f64) -> wasmtime::Result<i32> {
    static ZONES: OnceLock<TimeZoneDatabase> = OnceLock::new();
    let (name, _) = guest_bytes(&mut caller, at, length)?;
    let zone = str::from_utf8(name).ok().and_then(|name| ZONES.get_or_init(TimeZoneDatabase::bundled).get(name).ok());
    let time = if epoch_ms.is_finite() { Timestamp::from_millisecond(epoch_ms as i64).ok() } else { None };
    Ok(match (zone, time) {
        (Some(zone), Some(time)) => zone.to_offset(time).seconds() / 60,
        _ => i32::MIN,
    })
}

/// Returns the length of the surroundings as JSON, and copies them if `room` is large enough.
fn copy_surroundings(mut caller: Caller<'_, HostState>, target: u32, room: u32) -> wasmtime::Result<u32> {
    let text = caller.data().surroundings.clone();
    let length = text.len() as u32;
    if room >= length {
        guest_bytes(&mut caller, target, length)?.0.copy_from_slice(text.as_bytes());
    }
    Ok(length)
}

/// Adds bytes to the digest of the global that is examined.
fn absorb(mut caller: Caller<'_, HostState>, at: u32, length: u32) -> wasmtime::Result<()> {
    let (bytes, host) = guest_bytes(&mut caller, at, length)?;
    host.global_digest.update(bytes);
    Ok(())
}
