//! Splits a guest into its code without initial data, that data, and its prelude.
//! Invariant: the code for the compiler has no data segments. Wasmtime would write them into the memory of every new
//! instance, over the image that is mapped there. Only the boot writes them, once.

use wasmparser::{DataKind, ExternalKind, GlobalSectionReader, ImportSectionReader, Operator, Parser, Payload};

use super::Error;

/// The name of the sections that `build/prelude.rs` writes.
const PRELUDE_SECTION: &str = "tokamak.prelude";
/// The only module that a guest may import from.
const HOST_MODULE: &str = "tokamak";
/// The largest guest. The time to compile grows with the size, and the guest of this build has about a megabyte.
const MAX_GUEST_BYTES: usize = 8 << 20;
/// The length of the magic number and the version at the beginning of WebAssembly.
const WASM_HEADER_BYTES: usize = 8;
const DATA_SECTION: u8 = 11;
const DATA_COUNT_SECTION: u8 = 12;

pub struct GuestParts {
    /// The module without its data sections.
    pub code: Vec<u8>,
    /// The initial data, as address and content.
    pub data: Vec<(u32, Vec<u8>)>,
    /// The name and the text of each file of the prelude, in order.
    pub prelude: Vec<(String, String)>,
    /// The size of the stack, which is at the beginning of the memory.
    pub stack_bytes: u32,
}

impl GuestParts {
    pub fn read(guest: &[u8]) -> Result<Self, Error> {
        if guest.len() > MAX_GUEST_BYTES {
            return Err(Error::Shape("it is too large"));
        }
        let mut parts = Self {
            code: guest.get(..WASM_HEADER_BYTES).unwrap_or_default().to_vec(),
            data: Vec::new(),
            prelude: Vec::new(),
            stack_bytes: 0,
        };
        let mut exports_memory = false;
        for payload in Parser::new(0).parse_all(guest) {
            let payload = payload?;
            match &payload {
                Payload::CustomSection(section) => {
                    if section.name() == PRELUDE_SECTION {
                        parts.prelude.push(prelude_file(section.data())?);
                    }
                    continue;
                }
                Payload::ImportSection(section) => check_imports(section.clone())?,
                Payload::GlobalSection(section) => parts.stack_bytes = initial_stack_pointer(section.clone())?,
                // Code that runs at instantiation would write into the mapped image.
                Payload::StartSection { .. } => return Err(Error::Shape("it has a start function")),
                Payload::ExportSection(section) => {
                    for export in section.clone() {
                        let export = export?;
                        exports_memory |= export.name == "memory" && export.kind == ExternalKind::Memory;
                    }
                }
                Payload::DataSection(section) => {
                    for segment in section.clone() {
                        let segment = segment?;
                        parts.data.push((data_address(&segment.kind)?, segment.data.to_vec()));
                    }
                }
                _ => {}
            }
            if let Some((id, range)) = payload.as_section()
                && id != DATA_SECTION
                && id != DATA_COUNT_SECTION
            {
                let content = guest.get(range).ok_or(Error::Shape("a section is cut off"))?;
                parts.code.push(id);
                push_leb128(&mut parts.code, content.len());
                parts.code.extend_from_slice(content);
            }
        }
        if !exports_memory || parts.stack_bytes == 0 || parts.prelude.is_empty() {
            return Err(Error::Shape("memory, stack or prelude is missing"));
        }
        Ok(parts)
    }
}

fn prelude_file(section: &[u8]) -> Result<(String, String), Error> {
    let text = std::str::from_utf8(section).map_err(|_| Error::Shape("its prelude is not text"))?;
    let (name, text) = text.split_once('\0').ok_or(Error::Shape("a file of its prelude has no name"))?;
    Ok((name.to_owned(), text.to_owned()))
}

fn check_imports(section: ImportSectionReader<'_>) -> Result<(), Error> {
    for import in section.into_imports() {
        let import = import?;
        if import.module != HOST_MODULE {
            return Err(Error::Import(format!("{}.{}", import.module, import.name)));
        }
    }
    Ok(())
}

/// Returns the initial stack pointer, which is the only global of a C program. Globals are not part of an image, so
/// another one would be lost between two steps.
fn initial_stack_pointer(section: GlobalSectionReader<'_>) -> Result<u32, Error> {
    let mut globals = section.into_iter();
    let (Some(global), None) = (globals.next(), globals.next()) else {
        return Err(Error::Shape("it has other globals than its stack pointer"));
    };
    constant(global?.init_expr.get_operators_reader().read()?)
}

fn data_address(kind: &DataKind<'_>) -> Result<u32, Error> {
    match kind {
        DataKind::Active { memory_index: 0, offset_expr } => constant(offset_expr.get_operators_reader().read()?),
        _ => Err(Error::Shape("it has data without an address")),
    }
}

fn constant(operator: Operator<'_>) -> Result<u32, Error> {
    match operator {
        Operator::I32Const { value } => u32::try_from(value).map_err(|_| Error::Shape("an address is out of range")),
        _ => Err(Error::Shape("an address is not a constant")),
    }
}

/// Appends a number as LEB128, the encoding of lengths in WebAssembly.
fn push_leb128(bytes: &mut Vec<u8>, mut value: usize) {
    while value >= 128 {
        bytes.push(128 | (value & 127) as u8);
        value >>= 7;
    }
    bytes.push(value as u8);
}
