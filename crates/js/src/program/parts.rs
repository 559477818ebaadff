//! Splits a guest file into its code, its initial data and its prelude.
//! Invariant: the code for the compiler has no data segments. Wasmtime would write data segments into the memory of
//! every new instance, over the heap that is mapped there. Only the boot writes the initial data.

use wasmparser::{DataKind, ExternalKind, GlobalSectionReader, ImportSectionReader, Operator, Parser, Payload};

use super::Error;

/// The name of the custom sections with the prelude, which `build/prelude.rs` writes.
const PRELUDE_SECTION: &str = "tokamak.prelude";
/// The name of the only module that a guest may import from.
const HOST_MODULE: &str = "tokamak";
/// The size of the largest guest file. The time to compile grows with the size. The guest of this build has about 1 MB.
const MAX_GUEST_BYTES: usize = 8 << 20;
/// The length of the magic number and the version at the beginning of WebAssembly.
const WASM_HEADER_BYTES: usize = 8;
const DATA_SECTION_ID: u8 = 11;
const DATA_COUNT_SECTION_ID: u8 = 12;

pub struct GuestParts {
    /// The module without its data sections.
    pub code: Vec<u8>,
    /// The segments of initial data, each with its address.
    pub data: Vec<(u32, Vec<u8>)>,
    /// The name and the text of each file of the prelude, in the order in which the boot runs them.
    pub prelude: Vec<(String, String)>,
    /// The size of the guest's stack, which is at the beginning of the memory.
    pub stack_bytes: u32,
}

impl GuestParts {
    pub fn read(guest: &[u8]) -> Result<Self, Error> {
        if guest.len() > MAX_GUEST_BYTES {
            return Err(Error::Shape("the file is larger than 8 MiB"));
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
                // A start function runs at instantiation and could write over the mapped heap.
                Payload::StartSection { .. } => return Err(Error::Shape("the file has a start function")),
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
                && id != DATA_SECTION_ID
                && id != DATA_COUNT_SECTION_ID
            {
                let content = guest.get(range).ok_or(Error::Shape("a section of the file is cut off"))?;
                parts.code.push(id);
                push_leb128(&mut parts.code, content.len());
                parts.code.extend_from_slice(content);
            }
        }
        if !exports_memory || parts.stack_bytes == 0 || parts.prelude.is_empty() {
            return Err(Error::Shape("the file has no memory, no stack or no prelude"));
        }
        Ok(parts)
    }
}

fn prelude_file(section: &[u8]) -> Result<(String, String), Error> {
    let text = std::str::from_utf8(section).map_err(|_| Error::Shape("the prelude is not UTF-8 text"))?;
    let (name, text) = text.split_once('\0').ok_or(Error::Shape("a file of the prelude has no name"))?;
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

/// Returns the initial stack pointer, which is the only WebAssembly global of a C program. Globals are not part of a
/// heap, so the value of another global would be lost between two steps.
fn initial_stack_pointer(section: GlobalSectionReader<'_>) -> Result<u32, Error> {
    let mut globals = section.into_iter();
    let (Some(global), None) = (globals.next(), globals.next()) else {
        return Err(Error::Shape("the file has other WebAssembly globals than the stack pointer"));
    };
    read_constant(global?.init_expr.get_operators_reader().read()?)
}

fn data_address(kind: &DataKind<'_>) -> Result<u32, Error> {
    match kind {
        DataKind::Active { memory_index: 0, offset_expr } => read_constant(offset_expr.get_operators_reader().read()?),
        _ => Err(Error::Shape("a data segment of the file has no address")),
    }
}

fn read_constant(operator: Operator<'_>) -> Result<u32, Error> {
    match operator {
        Operator::I32Const { value } => {
            u32::try_from(value).map_err(|_| Error::Shape("the address of a data segment or of the stack is negative"))
        }
        _ => Err(Error::Shape("the address of a data segment or of the stack is not a constant")),
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
