//! The parts of a guest: its code without the initial data, that data, and its prelude.
//! Invariant: what is given to the compiler has no data segments. They would be written into the memory of every new
//! instance, over the image that is mapped there; only the boot writes them, once.

use wasmparser::{DataKind, ExternalKind, GlobalSectionReader, ImportSectionReader, Operator, Parser, Payload};

use super::Error;

/// The section that `build/prelude.rs` writes.
const PRELUDE: &str = "tokamak.prelude";
const HOST: &str = "tokamak";
/// Compiling takes as long as a guest is large. Ours has about a megabyte.
const MOST_BYTES: usize = 8 << 20;
const DATA: u8 = 11;
const DATA_COUNT: u8 = 12;

pub struct Parts {
    pub code: Vec<u8>,
    /// Where in memory, and what.
    pub data: Vec<(u32, Vec<u8>)>,
    /// Name and text of each file, in order.
    pub prelude: Vec<(String, String)>,
    /// The stack takes the memory from 0 to here.
    pub stack_bytes: u32,
}

impl Parts {
    pub fn read(guest: &[u8]) -> Result<Self, Error> {
        if guest.len() > MOST_BYTES {
            return Err(Error::Shape("it is too large"));
        }
        let mut parts = Self {
            code: guest.get(..8).unwrap_or_default().to_vec(),
            data: Vec::new(),
            prelude: Vec::new(),
            stack_bytes: 0,
        };
        let mut memory = false;
        for payload in Parser::new(0).parse_all(guest) {
            let payload = payload?;
            match &payload {
                Payload::CustomSection(section) => {
                    if section.name() == PRELUDE {
                        parts.prelude.push(prelude(section.data())?);
                    }
                    continue;
                }
                Payload::ImportSection(section) => only_ours(section.clone())?,
                Payload::GlobalSection(section) => parts.stack_bytes = stack(section.clone())?,
                Payload::StartSection { .. } => return Err(Error::Shape("it starts by itself")),
                Payload::ExportSection(section) => {
                    for export in section.clone() {
                        let export = export?;
                        memory |= export.name == "memory" && export.kind == ExternalKind::Memory;
                    }
                }
                Payload::DataSection(section) => {
                    for segment in section.clone() {
                        let segment = segment?;
                        parts.data.push((offset(&segment.kind)?, segment.data.to_vec()));
                    }
                }
                _ => {}
            }
            if let Some((id, range)) = payload.as_section()
                && id != DATA
                && id != DATA_COUNT
            {
                let content = guest.get(range).ok_or(Error::Shape("a section is cut off"))?;
                parts.code.push(id);
                length(&mut parts.code, content.len());
                parts.code.extend_from_slice(content);
            }
        }
        if !memory || parts.stack_bytes == 0 || parts.prelude.is_empty() {
            return Err(Error::Shape("memory, stack or prelude is missing"));
        }
        Ok(parts)
    }
}

fn prelude(section: &[u8]) -> Result<(String, String), Error> {
    let text = std::str::from_utf8(section).map_err(|_| Error::Shape("its prelude is not text"))?;
    let (name, text) = text.split_once('\0').ok_or(Error::Shape("its prelude has no name"))?;
    Ok((name.to_owned(), text.to_owned()))
}

fn only_ours(section: ImportSectionReader<'_>) -> Result<(), Error> {
    for import in section.into_imports() {
        let import = import?;
        if import.module != HOST {
            return Err(Error::Import(format!("{}.{}", import.module, import.name)));
        }
    }
    Ok(())
}

/// The one global that a C program has is its stack pointer. It is not part of an image, so there must be no other.
fn stack(section: GlobalSectionReader<'_>) -> Result<u32, Error> {
    let mut globals = section.into_iter();
    let (Some(global), None) = (globals.next(), globals.next()) else {
        return Err(Error::Shape("it has globals beside its stack pointer"));
    };
    constant(global?.init_expr.get_operators_reader().read()?)
}

fn offset(kind: &DataKind<'_>) -> Result<u32, Error> {
    match kind {
        DataKind::Active { memory_index: 0, offset_expr } => constant(offset_expr.get_operators_reader().read()?),
        _ => Err(Error::Shape("it has data that is not placed")),
    }
}

fn constant(operator: Operator<'_>) -> Result<u32, Error> {
    match operator {
        Operator::I32Const { value } => u32::try_from(value).map_err(|_| Error::Shape("an address is out of range")),
        _ => Err(Error::Shape("an address is not a constant")),
    }
}

/// LEB128, as the format has it.
fn length(into: &mut Vec<u8>, mut value: usize) {
    while value >= 128 {
        into.push(128 | (value & 127) as u8);
        value >>= 7;
    }
    into.push(value as u8);
}
