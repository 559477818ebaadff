//! Appends the prelude to the guest, one custom section for each file, so that one file is the complete engine.

use std::error::Error;
use std::fs;
use std::path::Path;

/// The name of the sections. `src/program/parts.rs` searches for it.
const SECTION: &str = "tokamak.prelude";

/// Appends the files in the order of their names. A section holds the file's name, a zero byte and the file's text.
pub fn with_prelude(mut wasm: Vec<u8>, folder: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut files: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    files.retain(|file| file.path().extension().is_some_and(|extension| extension == "js"));
    files.sort_by_key(|file| file.file_name());
    for file in files {
        let mut content = Vec::new();
        push_leb128(&mut content, SECTION.len());
        content.extend(SECTION.as_bytes());
        content.extend(file.file_name().to_string_lossy().as_bytes());
        content.push(0);
        content.extend(fs::read(file.path())?);
        wasm.push(0);
        push_leb128(&mut wasm, content.len());
        wasm.extend(content);
    }
    Ok(wasm)
}

/// Appends a number as LEB128, the encoding of lengths in WebAssembly.
fn push_leb128(bytes: &mut Vec<u8>, mut value: usize) {
    while value >= 128 {
        bytes.push(128 | (value & 127) as u8);
        value >>= 7;
    }
    bytes.push(value as u8);
}
