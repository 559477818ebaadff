//! The type `Guest`, a running instance of the JavaScript engine, and the calls into it. Each call starts and ends with
//! an empty guest stack.
//! Invariant: after an error the memory of the guest may be corrupt, so its owner drops the guest.

use std::sync::Arc;

use base::Digest;
use ports::scripts::{Completion, Global, Limits, Stop, Surroundings, Thrown, Turns};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use wasmtime::{Memory, Store, TypedFunc, WasmParams, WasmResults};

use crate::image::PAGE_BYTES;
use crate::program::{self, GuestParts};

use super::guest_output::{GuestCall, MAX_RESULT_BYTES, OutputReader};
use super::host::{Console, GuestError, HostState, LinkedModule};
use super::memory::MemoryView;

/// The unit in which a WebAssembly memory grows.
const WASM_PAGE_BYTES: u64 = 64 << 10;

/// A running instance of the JavaScript engine in Wasmtime.
pub struct Guest {
    store: Store<HostState>,
    instance: wasmtime::Instance,
    memory: Memory,
    exports: Exports,
}

/// The exported functions of the guest that steps call. They are looked up once for each guest.
struct Exports {
    /// Allocates guest memory for input of the given length, and returns its address.
    room: TypedFunc<u32, u32>,
    evaluate: TypedFunc<(u32, u32), ()>,
    settle: TypedFunc<(u64, u32, u32, u32), i32>,
    advance: TypedFunc<(), i32>,
    /// Writes the pending calls of the script as output, and returns their number.
    owed: TypedFunc<(), u32>,
    last_id: TypedFunc<(), u64>,
    /// Returns the address of the output that the last call has written.
    out: TypedFunc<(), u32>,
    out_length: TypedFunc<(), u32>,
    /// Frees the output of the last call.
    clear: TypedFunc<(), ()>,
}

/// The state of a script after all its runnable jobs have run.
#[derive(Debug)]
pub enum ScriptProgress {
    Waiting,
    Completed(Completion),
    Threw(Thrown),
}

impl Guest {
    /// Creates a guest with an empty memory. The guest can be called only after an image was mapped into its memory or
    /// [`Guest::boot`] has succeeded.
    pub fn instantiate(module: &LinkedModule) -> Result<Self, GuestError> {
        let (mut store, instance) = module.instantiate().map_err(GuestError::Trap)?;
        let memory =
            instance.get_memory(&mut store, "memory").ok_or(GuestError::Invalid("the guest exports no memory"))?;
        store.data_mut().memory = Some(memory);
        let exports = Exports {
            room: export(&mut store, instance, "tk_room")?,
            evaluate: export(&mut store, instance, "tk_evaluate")?,
            settle: export(&mut store, instance, "tk_settle")?,
            advance: export(&mut store, instance, "tk_advance")?,
            owed: export(&mut store, instance, "tk_owed")?,
            last_id: export(&mut store, instance, "tk_last_id")?,
            out: export(&mut store, instance, "tk_out")?,
            out_length: export(&mut store, instance, "tk_out_length")?,
            clear: export(&mut store, instance, "tk_clear")?,
        };
        Ok(Self { store, instance, memory, exports })
    }

    /// Boots the engine: writes the initial data, initializes the engine and runs the prelude, the JavaScript files
    /// that define the globals. Each boot of equal parts makes the same memory.
    pub fn boot(&mut self, parts: &GuestParts) -> Result<(), program::Error> {
        let boot_error = |error: GuestError| program::Error::Boot(wasmtime::Error::new(error));
        for (at, bytes) in &parts.data {
            self.memory
                .write(&mut self.store, *at as usize, bytes)
                .map_err(|_| program::Error::Shape("the initial data of the guest is outside its memory"))?;
        }
        for name in ["_initialize", "tk_boot"] {
            let call = export::<(), ()>(&mut self.store, self.instance, name).map_err(boot_error)?;
            call.call(&mut self.store, ()).map_err(program::Error::Boot)?;
        }
        let run_prelude =
            export::<(u32, u32, u32), i32>(&mut self.store, self.instance, "tk_prelude").map_err(boot_error)?;
        for (name, text) in &parts.prelude {
            let text_at = self.write_input(text.as_bytes()).map_err(boot_error)?;
            let name_at = self.write_input(name.as_bytes()).map_err(boot_error)?;
            let failed = run_prelude
                .call(&mut self.store, (text_at, text.len() as u32, name_at))
                .map_err(program::Error::Boot)?;
            if failed != 0 {
                let thrown = self.read_output(|mut output| output.thrown()).map_err(boot_error)?;
                return Err(program::Error::Prelude(format!("{}: {}\n{}", thrown.name, thrown.message, thrown.stack)));
            }
        }
        let ready = export::<(), ()>(&mut self.store, self.instance, "tk_ready").map_err(boot_error)?;
        ready.call(&mut self.store, ()).map_err(program::Error::Boot)
    }

    /// Prepares the guest for one step. The deadline counts from this call.
    pub fn begin_step(
        &mut self,
        limits: &Limits,
        stops: [&Stop; 2],
        surroundings: &Surroundings,
    ) -> Result<(), GuestError> {
        self.store.data_mut().begin_step(limits, stops, surroundings);
        self.store.set_epoch_deadline(1);
        if self.memory.data_size(&self.store) as u64 > limits.memory_bytes {
            return Err(GuestError::Memory);
        }
        self.store.data_mut().check_limits().map_or(Ok(()), Err)
    }

    /// Sets the scheduler that can pause the guest while it is the turn of other steps.
    pub fn set_turns(&mut self, turns: Option<Arc<dyn Turns>>) {
        self.store.data_mut().turns = turns;
    }

    /// Sets the largest size of the guest's memory in bytes.
    pub fn set_memory_limit(&mut self, bytes: u64) {
        self.store.data_mut().set_memory_limit(bytes);
    }

    /// Grows the guest's memory to at least `bytes` bytes. A larger memory stays unchanged.
    pub fn grow_to(&mut self, bytes: u64) -> Result<(), GuestError> {
        let missing = bytes.saturating_sub(self.memory.data_size(&self.store) as u64).div_ceil(WASM_PAGE_BYTES);
        if missing > 0 {
            let grown = self.memory.grow(&mut self.store, missing);
            self.checked(grown)?;
        }
        Ok(())
    }

    pub fn view(&mut self) -> MemoryView<'_> {
        MemoryView(self.memory.data_mut(&mut self.store))
    }

    pub fn pages(&self) -> u32 {
        (self.memory.data_size(&self.store) / PAGE_BYTES) as u32
    }

    /// Removes and returns the console output of the step.
    pub fn take_console(&mut self) -> Console {
        std::mem::take(&mut self.store.data_mut().console)
    }

    /// Sets the console output that another guest wrote earlier in the same step. New lines are added to it.
    pub fn resume_console(&mut self, console: Console) {
        self.store.data_mut().console = console;
    }

    pub fn evaluate(&mut self, code: &str) -> Result<(), GuestError> {
        let at = self.write_input(code.as_bytes())?;
        let result = self.exports.evaluate.call(&mut self.store, (at, code.len() as u32));
        self.checked(result)
    }

    /// Settles the pending call `id` with its answer. Returns false if the guest has no pending call with this id.
    pub fn settle(&mut self, id: u64, answer: &Result<Value, Thrown>) -> Result<bool, GuestError> {
        let (text, error_name) = match answer {
            Ok(value) => (value.to_string(), 0),
            Err(thrown) => (thrown.message.clone(), self.write_input(thrown.name.as_bytes())?),
        };
        let at = self.write_input(text.as_bytes())?;
        let result = self.exports.settle.call(&mut self.store, (id, at, text.len() as u32, error_name));
        match self.checked(result)? {
            0 => Ok(true),
            1 => Ok(false),
            _ => Err(GuestError::Invalid("the guest rejects the answer of a call")),
        }
    }

    /// Runs the jobs of the script until no job is runnable, and returns the state of the script.
    pub fn advance(&mut self) -> Result<ScriptProgress, GuestError> {
        let result = self.exports.advance.call(&mut self.store, ());
        let progress = match self.checked(result)? {
            0 => ScriptProgress::Waiting,
            1 => ScriptProgress::Completed(self.read_output(|mut output| output.completion())?),
            2 => {
                let text = self.read_output(|mut output| output.bounded_text(MAX_RESULT_BYTES))?;
                ScriptProgress::Completed(Completion::Inspected(text))
            }
            3 => ScriptProgress::Completed(Completion::Undefined),
            4 => ScriptProgress::Threw(self.read_output(|mut output| output.thrown())?),
            _ => return Err(GuestError::Invalid("the guest returns an unknown state of the script")),
        };
        self.clear_output()?;
        Ok(progress)
    }

    /// Runs one job and returns whether more jobs are runnable. Only tests need this function, and guests of older
    /// builds may not export it.
    pub fn run_one_job(&mut self) -> Result<bool, GuestError> {
        let run_job = export::<(), i32>(&mut self.store, self.instance, "tk_turn")?;
        let result = run_job.call(&mut self.store, ());
        Ok(self.checked(result)? != 0)
    }

    /// Returns the pending calls in the order in which the script made them.
    pub fn pending_calls(&mut self) -> Result<Vec<GuestCall>, GuestError> {
        let result = self.exports.owed.call(&mut self.store, ());
        let count = self.checked(result)?;
        if count == 0 {
            return Ok(Vec::new());
        }
        let calls = self.read_output(|mut output| (0..count).map(|_| output.call()).collect())?;
        self.clear_output()?;
        Ok(calls)
    }

    /// Returns the highest id that the guest has given to a call.
    pub fn last_call_id(&mut self) -> Result<u64, GuestError> {
        let result = self.exports.last_id.call(&mut self.store, ());
        self.checked(result)
    }

    /// Returns the global variables that scripts have defined, each with a digest of all values that are reachable from
    /// it. No script code runs.
    pub fn globals(&mut self) -> Result<Vec<Global>, GuestError> {
        let examine = export::<u32, i32>(&mut self.store, self.instance, "tk_global")?;
        let mut globals = Vec::new();
        for index in 0.. {
            self.store.data_mut().global_digest = Sha256::new();
            let result = examine.call(&mut self.store, index);
            match self.checked(result)? {
                // The entry at this index is not a global variable of a script.
                0 => continue,
                1 => {}
                // The index is after the last entry.
                _ => break,
            }
            let (name, kind, preview, size) =
                self.read_output(|mut output| Ok((output.text()?, output.text()?, output.text()?, output.u64()?)))?;
            let digest = std::mem::take(&mut self.store.data_mut().global_digest).finalize();
            // The guest cuts a preview at a byte, which may be inside a character.
            let preview = preview.trim_end_matches('\u{fffd}').to_owned();
            globals.push(Global { name, kind, preview, size, digest: Digest::from_bytes(digest.into()) });
        }
        Ok(globals)
    }

    fn clear_output(&mut self) -> Result<(), GuestError> {
        let result = self.exports.clear.call(&mut self.store, ());
        self.checked(result)
    }

    /// Copies bytes into the guest's memory and returns their address. The guest frees the bytes in the call that
    /// receives the address.
    fn write_input(&mut self, bytes: &[u8]) -> Result<u32, GuestError> {
        let length = u32::try_from(bytes.len()).map_err(|_| GuestError::Memory)?;
        let result = self.exports.room.call(&mut self.store, length);
        let at = self.checked(result)?;
        self.memory
            .write(&mut self.store, at as usize, bytes)
            .map_err(|_| GuestError::Invalid("the guest allocates outside its memory"))?;
        Ok(at)
    }

    /// Decodes the output of the last call in place. A copy could need as much memory as the whole guest.
    fn read_output<T>(
        &mut self,
        decode: impl FnOnce(OutputReader<'_>) -> Result<T, GuestError>,
    ) -> Result<T, GuestError> {
        const OUTPUT_OUTSIDE_MEMORY: GuestError = GuestError::Invalid("the output of the guest is outside its memory");
        let result = self.exports.out.call(&mut self.store, ());
        let at = self.checked(result)? as usize;
        let result = self.exports.out_length.call(&mut self.store, ());
        let length = self.checked(result)? as usize;
        let memory = self.memory.data(&self.store);
        let end = at.checked_add(length).ok_or(OUTPUT_OUTSIDE_MEMORY)?;
        decode(OutputReader(memory.get(at..end).ok_or(OUTPUT_OUTSIDE_MEMORY)?))
    }

    /// Replaces an error of Wasmtime by the reason for which the host ended the guest. Without such a reason the error
    /// is a trap of the guest.
    fn checked<T>(&mut self, result: wasmtime::Result<T>) -> Result<T, GuestError> {
        result.map_err(|error| self.store.data_mut().error.take().unwrap_or(GuestError::Trap(error)))
    }
}

fn export<P: WasmParams, R: WasmResults>(
    store: &mut Store<HostState>,
    instance: wasmtime::Instance,
    name: &str,
) -> Result<TypedFunc<P, R>, GuestError> {
    instance.get_typed_func(store, name).map_err(GuestError::Trap)
}
