//! `tokamak fmt`: formats a program.
//! Invariant: the file of a program with mistakes is not changed. A file is replaced as a whole or not at all.

use base::{Limits, render_for_people};
use lang::syntax::format_text;
use serde_json::json;

use super::debug::{ProgramSource, read_program};
use crate::args::FmtArgs;
use crate::failure::Failure;
use crate::output::Output;

pub fn run(args: &FmtArgs, output: &Output) -> Result<(), Failure> {
    let ProgramSource { name, text } = read_program(args.file.as_deref())?;
    let formatted = match format_text(&text, &Limits::default()) {
        Ok(formatted) => formatted,
        Err(diagnostics) => {
            output.notice(render_for_people(&name, &text, &diagnostics, output.colour()).trim_end());
            return Err(Failure::Found(format!(
                "{name} has mistakes and was not formatted; correct the mistakes first"
            )));
        }
    };
    let changed = formatted != text;
    if args.check {
        if output.json {
            output.value(&json!({"file": name, "changed": changed}));
        }
        return if changed {
            Err(Failure::Found(format!("{name} is not formatted; `tokamak fmt` without --check formats it")))
        } else {
            Ok(())
        };
    }
    match args.file.as_deref().filter(|path| path.as_os_str() != "-") {
        Some(path) if changed => {
            // The text is written to a new file, which then replaces the old one, so that a crash cannot leave half of the program.
            let new = path.with_extension("plasm.new");
            let unwritable = |cause| Failure::Unwritable { path: path.to_owned(), cause };
            std::fs::write(&new, &formatted).map_err(unwritable)?;
            // The new file keeps the permissions of the old one, so that a private program stays private.
            let permissions = std::fs::metadata(path).map_err(unwritable)?.permissions();
            std::fs::set_permissions(&new, permissions).map_err(unwritable)?;
            std::fs::rename(&new, path).map_err(unwritable)?;
        }
        Some(_) => {}
        None if output.json => output.value(&json!({"text": formatted, "changed": changed})),
        None => output.line(formatted.trim_end_matches('\n')),
    }
    Ok(())
}
