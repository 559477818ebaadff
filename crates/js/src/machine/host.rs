//! The host functions that a guest imports: time, random bytes, console lines, digests, time zones, the surroundings of
//! a step, and the end of the guest when its memory is exhausted.
//! Invariant: no host function blocks, opens a file or uses the network.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::tz::TimeZoneDatabase;
use ports::scripts::{Limits, Stop, Surroundings, Turns};
use sha2::{Digest as _, Sha256, Sha384, Sha512};
use wasmtime::{Caller, Engine, InstancePre, Linker, Memory, Module, ResourceLimiter, Store, UpdateDeadline};

/// The module name of the guest's imports.
const HOST_MODULE: &str = "tokamak";
/// The time that a booting guest reads: 2000-01-01. It is fixed, so that each boot makes the same image.
const BOOT_TIME_MS: f64 = 946_684_800_000.0;
/// The value of each random byte that a booting guest reads. It is fixed, so that each boot makes the same image.
const BOOT_RANDOM_BYTE: u8 = 1;
/// The level that a guest passes to `print` for a promise rejection that no code handled.
const UNHANDLED_REJECTION: i32 = 4;
/// The size of the largest memory with 32-bit addresses.
const MAX_MEMORY_BYTES: u64 = 4 << 30;
/// The time limit of a boot. An imported engine is not trusted, so its boot is limited like a run.
const BOOT_DEADLINE: Duration = Duration::from_secs(20);
const BOOT_MEMORY_BYTES: u64 = 256 << 20;
const MAX_TABLE_ENTRIES: usize = 100_000;

/// Why a call into a guest failed. The guest's memory is unusable afterwards.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    #[error("the script reached its memory limit")]
    Memory,
    #[error("the script reached its deadline")]
    Deadline,
    #[error("the step of the script was stopped")]
    Stopped,
    /// The guest violates the interface between guest and host, so its code or its image was not made by our build.
    #[error("the JavaScript guest breaks its interface: {0}")]
    Invalid(&'static str),
    #[error("the JavaScript guest trapped")]
    Trap(#[source] wasmtime::Error),
}

/// The host's state for one guest.
pub struct HostState {
    /// The guest's memory. `None` until the instance exists.
    pub memory: Option<Memory>,
    /// The reason for which the host ended the guest. Wasmtime reports only a trap to the caller of the guest.
    pub error: Option<GuestError>,
    pub console: Console,
    /// The digest of the global variable that `Guest::globals` examines at the moment.
    pub global_digest: Sha256,
    /// Whether the guest is booting. Time and random bytes are fixed during a boot.
    booting: bool,
    /// The largest size of the memory in bytes.
    memory_limit: u64,
    deadline: Option<Instant>,
    /// The stop of the step and the stop of the whole engine. Each of them ends the step.
    stops: [Stop; 2],
    /// The scheduler. The host calls it at each epoch and pauses the guest while it is the turn of other steps. It is
    /// `None` between steps.
    pub turns: Option<Arc<dyn Turns>>,
    /// The surroundings of the step (headers, programs, fetch) as JSON. The guest reads them from the host at each use,
    /// so that no heap contains them.
    surroundings: Arc<str>,
}

/// The console output of a step.
#[derive(Default)]
pub struct Console {
    pub text: String,
    /// The largest length of `text` in bytes.
    pub limit_bytes: u64,
    /// The number of bytes that were dropped because of the limit.
    pub dropped_bytes: u64,
}

impl Console {
    fn add_line(&mut self, prefix: &str, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        for part in [prefix, &text, "\n"] {
            let room = usize::try_from(self.limit_bytes).unwrap_or(usize::MAX).saturating_sub(self.text.len());
            // After the first dropped byte no text is added, so that `text` is a prefix of the whole output.
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

    /// Prepares the state for one step. The deadline counts from this call.
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

    /// Pauses the guest while it is the turn of other steps, and returns an error if the guest must end. Wasmtime calls
    /// this at each epoch while the guest runs.
    pub fn check_limits(&mut self) -> Option<GuestError> {
        if let Some(turns) = &self.turns {
            let paused = turns.pause(&|| self.stops.iter().any(Stop::is_stopped));
            // The time of the pause is added to the deadline, because other steps used it.
            self.deadline = self.deadline.and_then(|deadline| deadline.checked_add(paused));
        }
        if self.stops.iter().any(Stop::is_stopped) {
            return Some(GuestError::Stopped);
        }
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline).then_some(GuestError::Deadline)
    }

    /// Records `error` as the reason, and returns the trap that makes Wasmtime end the guest.
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
    /// Ends the guest if its memory would grow beyond the limit. If the growth were only refused, the script would get
    /// an exception, which the script could catch.
    fn memory_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        if desired as u64 > self.memory_limit { self.end_guest(GuestError::Memory) } else { Ok(true) }
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(desired <= MAX_TABLE_ENTRIES)
    }
}

/// A compiled guest module whose imports are linked to the host functions.
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
        // Wasmtime compares the epoch in loops and at function entries. The ticker (`engine/ticker.rs`) increments the
        // epoch while guests run.
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
    linker.func_wrap(HOST_MODULE, "now", |caller: Caller<'_, HostState>| read_clock(caller.data()))?;
    linker.func_wrap(HOST_MODULE, "random", fill_random)?;
    linker.func_wrap(HOST_MODULE, "print", print_line)?;
    linker.func_wrap(HOST_MODULE, "digest", write_digest)?;
    linker.func_wrap(HOST_MODULE, "zone", zone_offset_minutes)?;
    linker.func_wrap(HOST_MODULE, "surroundings", copy_surroundings)?;
    linker.func_wrap(HOST_MODULE, "exhausted", |mut caller: Caller<'_, HostState>| {
        caller.data_mut().end_guest::<()>(GuestError::Memory)
    })?;
    linker.func_wrap(HOST_MODULE, "absorb", add_to_global_digest)?;
    Ok(())
}

/// Returns the `length` bytes of the guest's memory at address `at`, and the host's state. Ends the guest if the range
/// is outside its memory.
fn guest_bytes<'a>(
    caller: &'a mut Caller<'_, HostState>,
    at: u32,
    length: u32,
) -> wasmtime::Result<(&'a mut [u8], &'a mut HostState)> {
    let Some(memory) = caller.data().memory else {
        return caller.data_mut().end_guest(GuestError::Invalid("the guest calls the host before it is started"));
    };
    let at = at as usize;
    if memory.data_size(&caller).checked_sub(length as usize).is_none_or(|last_start| at > last_start) {
        return caller.data_mut().end_guest(GuestError::Invalid("the guest passes an address outside its memory"));
    }
    let (all, host) = memory.data_and_store_mut(caller);
    Ok((&mut all[at..at + length as usize], host))
}

fn read_clock(host: &HostState) -> f64 {
    if host.booting {
        return BOOT_TIME_MS;
    }
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(BOOT_TIME_MS, |since| (since.as_micros() as f64) / 1000.0)
}

fn fill_random(mut caller: Caller<'_, HostState>, at: u32, length: u32) -> wasmtime::Result<()> {
    let (bytes, host) = guest_bytes(&mut caller, at, length)?;
    if host.booting {
        bytes.fill(BOOT_RANDOM_BYTE);
        return Ok(());
    }
    getrandom::fill(bytes).map_err(wasmtime::Error::new)
}

fn print_line(mut caller: Caller<'_, HostState>, level: i32, at: u32, length: u32) -> wasmtime::Result<()> {
    let (text, host) = guest_bytes(&mut caller, at, length)?;
    host.console.add_line(if level == UNHANDLED_REJECTION { "Uncaught (in promise) " } else { "" }, text);
    Ok(())
}

/// Writes the digest of a range of the guest's memory to the address `target`, and returns the digest's length. Returns
/// 0 if the algorithm is unknown.
fn write_digest(
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

/// Returns the offset of an IANA time zone at a time, in minutes east of UTC. Returns `i32::MIN` if the zone or the
/// time does not exist.
fn zone_offset_minutes(
    mut caller: Caller<'_, HostState>,
    at: u32,
    length: u32,
    epoch_ms: f64,
) -> wasmtime::Result<i32> {
    static ZONES: OnceLock<TimeZoneDatabase> = OnceLock::new();
    let (name, _) = guest_bytes(&mut caller, at, length)?;
    let zone = str::from_utf8(name).ok().and_then(|name| ZONES.get_or_init(TimeZoneDatabase::bundled).get(name).ok());
    let time = if epoch_ms.is_finite() { Timestamp::from_millisecond(epoch_ms as i64).ok() } else { None };
    Ok(match (zone, time) {
        (Some(zone), Some(time)) => zone.to_offset(time).seconds() / 60,
        _ => i32::MIN,
    })
}

/// Returns the length of the surroundings as JSON, and copies the JSON to `target` if it fits into `room` bytes.
fn copy_surroundings(mut caller: Caller<'_, HostState>, target: u32, room: u32) -> wasmtime::Result<u32> {
    let text = caller.data().surroundings.clone();
    let length = text.len() as u32;
    if room >= length {
        guest_bytes(&mut caller, target, length)?.0.copy_from_slice(text.as_bytes());
    }
    Ok(length)
}

/// Adds bytes of the guest's memory to the digest of the global variable that is examined.
fn add_to_global_digest(mut caller: Caller<'_, HostState>, at: u32, length: u32) -> wasmtime::Result<()> {
    let (bytes, host) = guest_bytes(&mut caller, at, length)?;
    host.global_digest.update(bytes);
    Ok(())
}
