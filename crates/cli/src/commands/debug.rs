//! `tokamak debug`: prints the output of each stage of the compiler for a program.
//! Invariant: the command compiles with the functions that the tool `plasm` uses, on a scope of the same type.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use ::ports::Clock;
use base::{Diagnostic, Limits, render_for_people};
use catalog::Catalog;
use lang::scope::Scope;
use lang::{check, plan, syntax};
use serde_json::{Value, json};
use session::{CompilerStages, compile_stages};
use teach::{Ledger, Seed};

use crate::args::{DebugArgs, DebugStage};
use crate::config::read_text;
use crate::failure::Failure;
use crate::output::Output;
use crate::ports::SystemClock;
use crate::{catalogs, shipped};

pub fn run(args: &DebugArgs, output: &Output) -> Result<(), Failure> {
    let ProgramSource { name, text: program } = read_program(args.file.as_deref())?;
    let mut scope = scope(args)?;
    scope.now = Some(SystemClock.now());
    let stages = compile_stages(&scope, &program, &Limits::default());
    let wanted: Vec<DebugStage> = [DebugStage::Tokens, DebugStage::Tree, DebugStage::Types, DebugStage::Plan]
        .into_iter()
        .filter(|stage| if args.stages { *stage <= args.stage } else { *stage == args.stage })
        .collect();
    if output.json {
        let values: serde_json::Map<String, Value> = wanted
            .iter()
            .map(|stage| (stage_name(*stage).to_owned(), stage_value(*stage, &program, &stages)))
            .collect();
        output.value(&json!({"stages": values, "diagnostics": stages.diagnostics}));
    } else {
        for stage in wanted {
            if args.stages {
                output.line(&output.bold(&format!("── {}", stage_name(stage))));
            }
            output.line(&stage_text(stage, &program, &stages));
        }
        if !stages.diagnostics.is_empty() {
            output.notice(render_for_people(&name, &program, &stages.diagnostics, output.colour()).trim_end());
        }
    }
    let errors = stages.diagnostics.iter().filter(|d| Diagnostic::is_error(d)).count();
    if errors > 0 {
        let text = if errors == 1 {
            "the program has 1 mistake".to_owned()
        } else {
            format!("the program has {errors} mistakes")
        };
        return Err(Failure::Found(text));
    }
    Ok(())
}

/// A program before it is parsed, with the name that messages use for it.
pub(super) struct ProgramSource {
    /// The path of the file, or `program` for standard input.
    pub name: String,
    /// The text of the program.
    pub text: String,
}

/// Reads a program from a file. Without a file, or with the path `-`, it reads standard input.
pub(super) fn read_program(file: Option<&Path>) -> Result<ProgramSource, Failure> {
    match file {
        Some(path) if path.as_os_str() != "-" => {
            Ok(ProgramSource { name: path.display().to_string(), text: read_text(path)? })
        }
        _ => {
            let mut text = String::new();
            let unreadable = |cause| Failure::Unreadable { path: "standard input".into(), cause };
            std::io::stdin().read_to_string(&mut text).map_err(unreadable)?;
            Ok(ProgramSource { name: "program".to_owned(), text })
        }
    }
}

/// Returns the scope of a session that was taught every entity of the demo catalog and of the catalogs in the folders. Other shipped
/// catalogs are left out, because several of them have an entity `Issue`, so that this name would be ambiguous.
fn scope(args: &DebugArgs) -> Result<Scope, Failure> {
    let mut all: Vec<Arc<Catalog>> = vec![shipped::demo_catalog()?];
    all.extend(catalogs::load_folders(&args.catalogs)?);
    let catalogs: BTreeMap<_, _> = all.iter().map(|c| (c.id.clone(), c.clone())).collect();
    let seeds: Vec<Seed> =
        catalogs.values().flat_map(|c| c.entities.keys().map(|entity| Seed::new(c.id.clone(), entity))).collect();
    let extended =
        Ledger::default().extend(&catalogs, &teach::TeachRequest::all(&seeds)).map_err(session::Error::from)?;
    Ok(extended.ledger.scope(&catalogs))
}

fn stage_name(stage: DebugStage) -> &'static str {
    match stage {
        DebugStage::Tokens => "tokens",
        DebugStage::Tree => "tree",
        DebugStage::Types => "types",
        DebugStage::Plan => "plan",
    }
}

fn stage_text(stage: DebugStage, program: &str, stages: &CompilerStages) -> String {
    let unreached = || "(this stage was not reached, because an earlier stage found mistakes)".to_owned();
    match stage {
        DebugStage::Tokens => {
            syntax::tokens(program).iter().map(|t| token_line(program, t)).collect::<Vec<_>>().join("\n")
        }
        DebugStage::Tree => syntax::outline(&stages.parsed.program),
        DebugStage::Types => stages.checked.as_ref().map_or_else(unreached, check::outline),
        DebugStage::Plan => {
            stages.plan.as_ref().map_or_else(unreached, |p| format!("{}\ndigest {}", plan::explain(p), p.digest))
        }
    }
}

/// Returns the line of one token: its byte range, its kind and its text.
fn token_line(program: &str, token: &syntax::Token) -> String {
    let range = format!("{}..{}", token.span.start, token.span.end);
    format!("{range:>9}  {}  {:?}", token.kind, token.span.of(program))
}

fn stage_value(stage: DebugStage, program: &str, stages: &CompilerStages) -> Value {
    match stage {
        DebugStage::Tokens => json!(syntax::tokens(program)),
        DebugStage::Tree => json!(stages.parsed.program),
        DebugStage::Types => json!(stages.checked.as_ref().map(check::outline)),
        DebugStage::Plan => json!(stages.plan),
    }
}
