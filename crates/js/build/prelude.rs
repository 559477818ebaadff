//! Puts the prelude into the guest as one custom section for each file: a guest is then one file that says all it does.

use std::error::Error;
use std::fs;
use std::path::Path;

/// The section's name; the host looks for it.
const SECTION: &str = "tokamak.prelude";

/// Files in the order of their names. A section holds the file's name, a zero byte, and its text.
pub fn with_prelude(mut wasm: Vec<u8>, folder: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut files: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    files.retain(|file| file.path().extension().is_some_and(|end| end == "js"));
    files.sort_by_key(|file| file.file_name());
    for file in files {
        let mut content = Vec::new();
        text(&mut content, SECTION);
        content.extend(file.file_name().to_string_lossy().as_bytes());
        content.push(0);
        content.extend(fs::read(file.path())?);
        wasm.push(0);
        length(&mut wasm, content.len());
        wasm.extend(content);
    }
    Ok(wasm)
}

fn text(into: &mut Vec<u8>, text: &str) {
    length(into, text.len());
    into.extend(text.as_bytes());
}

/// LEB128, as the format has it.
fn length(into: &mut Vec<u8>, mut value: usize) {
    while value >= 128 {
        into.push(128 | (value & 127) as u8);
        value >>= 7;
    }
    into.push(value as u8);
}
