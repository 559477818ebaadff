//! `tokamak fmt`: a program in its one written form.
//! Invariant: a program with mistakes is left as it is; a file is replaced whole or not at all.

use base::{Limits, render_for_people};
use lang::syntax::format_text;
use serde_json::json;

use super::debug::program;
use crate::args::Fmt;
use crate::failure::Failure;
use crate::output::Output;

pub fn run(args: &Fmt, output: &Output) -> Result<(), Failure> {
    let (name, text) = program(args.file.as_deref())?;
    let formatted = match format_text(&text, &Limits::default()) {
        Ok(formatted) => formatted,
        Err(found) => {
            output.notice(render_for_people(&name, &text, &found, output.colour()).trim_end());
            return Err(Failure::Found(format!("{name} has mistakes and was left as it is")));
        }
    };
    let changed = formatted != text;
    if args.check {
        if output.json {
            output.value(&json!({"file": name, "changed": changed}));
        }
        return if changed { Err(Failure::Found(format!("{name} is not in its one form"))) } else { Ok(()) };
    }
    match args.file.as_deref().filter(|path| path.as_os_str() != "-") {
        Some(path) if changed => {
            let beside = path.with_extension("plasm.new");
            let unwritable = |cause| Failure::Unwritable { path: path.to_owned(), cause };
            std::fs::write(&beside, &formatted).map_err(unwritable)?;
            std::fs::rename(&beside, path).map_err(unwritable)?;
        }
        Some(_) => {}
        None if output.json => output.value(&json!({"text": formatted, "changed": changed})),
        None => output.line(formatted.trim_end_matches('\n')),
    }
    Ok(())
}
