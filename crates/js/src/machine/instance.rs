//! One guest that can be called. Each call starts and ends with an empty stack.
//! Invariant: after an error the guest is corrupt for all we know; whoever holds it drops it.

use std::sync::Arc;

use base::Digest;
use ports::scripts::{Completion, Global, Limits, Stop, Surroundings, Thrown, Turns};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use wasmtime::{Memory, Store, TypedFunc, WasmParams, WasmResults};

use crate::image::PAGE;
use crate::program::{self, Parts};

use super::host::{Console, Cut, Host, Linked};
use super::memory::View;
use super::wire::{self, Owed, Said};

const GRAIN: u64 = 64 << 10;

pub struct Instance {
    store: Store<Host>,
    instance: wasmtime::Instance,
    memory: Memory,
    exports: Exports,
}

struct Exports {
    room: TypedFunc<u32, u32>,
    evaluate: TypedFunc<(u32, u32), ()>,
    settle: TypedFunc<(u64, u32, u32, u32), i32>,
    advance: TypedFunc<(), i32>,
    owed: TypedFunc<(), u32>,
    last_id: TypedFunc<(), u64>,
    out: TypedFunc<(), u32>,
    out_length: TypedFunc<(), u32>,
    clear: TypedFunc<(), ()>,
}

/// Where a program stands after it ran as far as it could.
#[derive(Debug)]
pub enum Standing {
    Waiting,
    Done(Completion),
    Threw(Thrown),
}

impl Instance {
    /// With empty memory, in which nothing works before an image stands there.
    pub fn start(linked: &Linked) -> Result<Self, Cut> {
        let (mut store, instance) = linked.start().map_err(Cut::Trap)?;
        let memory = instance.get_memory(&mut store, "memory").ok_or(Cut::Lied("it has no memory"))?;
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

    /// An engine's first moments, the same every time.
    pub fn boot(&mut self, parts: &Parts) -> Result<(), program::Error> {
        let boots = |cut: Cut| program::Error::Boot(wasmtime::Error::new(cut));
        for (at, bytes) in &parts.data {
            self.memory
                .write(&mut self.store, *at as usize, bytes)
                .map_err(|_| program::Error::Shape("its data has no room"))?;
        }
        for name in ["_initialize", "tk_boot"] {
            let call = export::<(), ()>(&mut self.store, self.instance, name).map_err(boots)?;
            call.call(&mut self.store, ()).map_err(program::Error::Boot)?;
        }
        let prelude = export::<(u32, u32, u32), i32>(&mut self.store, self.instance, "tk_prelude").map_err(boots)?;
        for (name, text) in &parts.prelude {
            let at = self.put(text.as_bytes()).map_err(boots)?;
            let name_at = self.put(name.as_bytes()).map_err(boots)?;
            let failed =
                prelude.call(&mut self.store, (at, text.len() as u32, name_at)).map_err(program::Error::Boot)?;
            if failed != 0 {
                let thrown = self.read(|mut said| said.thrown()).map_err(boots)?;
                return Err(program::Error::Prelude(format!("{}: {}\n{}", thrown.name, thrown.message, thrown.stack)));
            }
        }
        let ready = export::<(), ()>(&mut self.store, self.instance, "tk_ready").map_err(boots)?;
        ready.call(&mut self.store, ()).map_err(program::Error::Boot)
    }

    /// For one step; its time counts from here.
    pub fn begin(&mut self, limits: &Limits, stops: [&Stop; 2], seen: &Surroundings) -> Result<(), Cut> {
        self.store.data_mut().begin(limits, stops, seen);
        self.store.set_epoch_deadline(1);
        if self.memory.data_size(&self.store) as u64 > limits.memory_bytes {
            return Err(Cut::Memory);
        }
        self.store.data_mut().look().map_or(Ok(()), Err)
    }

    /// From here on it lets others go first when they are asked; until `None`.
    pub fn share(&mut self, turns: Option<Arc<dyn Turns>>) {
        self.store.data_mut().turns = turns;
    }

    /// How large its memory may become.
    pub fn allow(&mut self, bytes: u64) {
        self.store.data_mut().allow(bytes);
    }

    /// Grows to so many bytes.
    pub fn grow(&mut self, bytes: u64) -> Result<(), Cut> {
        let more = bytes.saturating_sub(self.memory.data_size(&self.store) as u64).div_ceil(GRAIN);
        if more > 0 {
            let grown = self.memory.grow(&mut self.store, more);
            self.done(grown)?;
        }
        Ok(())
    }

    pub fn view(&mut self) -> View<'_> {
        View(self.memory.data_mut(&mut self.store))
    }

    pub fn pages(&self) -> u32 {
        (self.memory.data_size(&self.store) / PAGE) as u32
    }

    pub fn console(&mut self) -> Console {
        std::mem::take(&mut self.store.data_mut().console)
    }

    /// Goes on with what another guest wrote in the same step.
    pub fn resume_console(&mut self, console: Console) {
        self.store.data_mut().console = console;
    }

    pub fn evaluate(&mut self, code: &str) -> Result<(), Cut> {
        let at = self.put(code.as_bytes())?;
        let done = self.exports.evaluate.call(&mut self.store, (at, code.len() as u32));
        self.done(done)
    }

    /// False when the guest does not know of such a call.
    pub fn settle(&mut self, id: u64, answer: &Result<Value, Thrown>) -> Result<bool, Cut> {
        let (text, name) = match answer {
            Ok(value) => (value.to_string(), 0),
            Err(thrown) => (thrown.message.clone(), self.put(thrown.name.as_bytes())?),
        };
        let at = self.put(text.as_bytes())?;
        let settled = self.exports.settle.call(&mut self.store, (id, at, text.len() as u32, name));
        match self.done(settled)? {
            0 => Ok(true),
            1 => Ok(false),
            _ => Err(Cut::Lied("it does not understand an answer")),
        }
    }

    /// Runs what can be run.
    pub fn advance(&mut self) -> Result<Standing, Cut> {
        let status = self.exports.advance.call(&mut self.store, ());
        let standing = match self.done(status)? {
            0 => Standing::Waiting,
            1 => Standing::Done(self.read(|mut said| said.result())?),
            2 => Standing::Done(Completion::Inspected(self.read(|mut said| said.bounded(wire::RESULT_MOST))?)),
            3 => Standing::Done(Completion::Undefined),
            4 => Standing::Threw(self.read(|mut said| said.thrown())?),
            _ => return Err(Cut::Lied("an unknown standing")),
        };
        self.clear()?;
        Ok(standing)
    }

    /// Runs one job; whether there are more. An older engine has no such call.
    pub fn turn(&mut self) -> Result<bool, Cut> {
        let turn = export::<(), i32>(&mut self.store, self.instance, "tk_turn")?;
        let more = turn.call(&mut self.store, ());
        Ok(self.done(more)? != 0)
    }

    /// Every call it is waiting for, in the order they were asked for.
    pub fn owed(&mut self) -> Result<Vec<Owed>, Cut> {
        let count = self.exports.owed.call(&mut self.store, ());
        let count = self.done(count)?;
        if count == 0 {
            return Ok(Vec::new());
        }
        let owed = self.read(|mut said| (0..count).map(|_| said.owed()).collect())?;
        self.clear()?;
        Ok(owed)
    }

    /// The highest id it ever gave to a call.
    pub fn last_id(&mut self) -> Result<u64, Cut> {
        let id = self.exports.last_id.call(&mut self.store, ());
        self.done(id)
    }

    /// The names the heap holds, each with a digest of all that is reached from it. Runs no code of the program.
    pub fn globals(&mut self) -> Result<Vec<Global>, Cut> {
        let next = export::<u32, i32>(&mut self.store, self.instance, "tk_global")?;
        let mut globals = Vec::new();
        for index in 0.. {
            self.store.data_mut().absorbed = Sha256::new();
            let found = next.call(&mut self.store, index);
            match self.done(found)? {
                0 => continue,
                1 => {}
                _ => break,
            }
            let (name, kind, preview, size) =
                self.read(|mut said| Ok((said.text()?, said.text()?, said.text()?, said.u64()?)))?;
            let digest = std::mem::take(&mut self.store.data_mut().absorbed).finalize();
            // A preview is cut at a byte, which may be in a character.
            let preview = preview.trim_end_matches('\u{fffd}').to_owned();
            globals.push(Global { name, kind, preview, size, digest: Digest::from_bytes(digest.into()) });
        }
        Ok(globals)
    }

    fn clear(&mut self) -> Result<(), Cut> {
        let done = self.exports.clear.call(&mut self.store, ());
        self.done(done)
    }

    /// Puts bytes into the guest; the next call that takes them frees them.
    fn put(&mut self, bytes: &[u8]) -> Result<u32, Cut> {
        let length = u32::try_from(bytes.len()).map_err(|_| Cut::Memory)?;
        let at = self.exports.room.call(&mut self.store, length);
        let at = self.done(at)?;
        self.memory.write(&mut self.store, at as usize, bytes).map_err(|_| Cut::Lied("room outside its memory"))?;
        Ok(at)
    }

    /// What the last call left, read where it lies: it may be as large as all its memory.
    fn read<T>(&mut self, take: impl FnOnce(Said<'_>) -> Result<T, Cut>) -> Result<T, Cut> {
        let at = self.exports.out.call(&mut self.store, ());
        let at = self.done(at)? as usize;
        let length = self.exports.out_length.call(&mut self.store, ());
        let length = self.done(length)? as usize;
        let memory = self.memory.data(&self.store);
        let end = at.checked_add(length).ok_or(Cut::Lied("words outside its memory"))?;
        take(Said(memory.get(at..end).ok_or(Cut::Lied("words outside its memory"))?))
    }

    /// Why a call failed: what we cut it off for, or a trap of its own.
    fn done<T>(&mut self, result: wasmtime::Result<T>) -> Result<T, Cut> {
        result.map_err(|error| self.store.data_mut().cut.take().unwrap_or(Cut::Trap(error)))
    }
}

fn export<P: WasmParams, R: WasmResults>(
    store: &mut Store<Host>,
    instance: wasmtime::Instance,
    name: &str,
) -> Result<TypedFunc<P, R>, Cut> {
    instance.get_typed_func(store, name).map_err(Cut::Trap)
}
