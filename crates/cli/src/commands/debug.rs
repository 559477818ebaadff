//! `tokamak debug`: one program between the stages of its way to a plan.
//! Invariant: it calls the functions that `plasm` calls, on the same kind of scope, and prints what lies between them.

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

use crate::args::{Debug, Stage};
use crate::config::read_text;
use crate::failure::Failure;
use crate::output::Output;
use crate::ports::SystemClock;
use crate::{catalogs, shipped};

pub fn run(args: &Debug, output: &Output) -> Result<(), Failure> {
    let (name, program) = program(args.file.as_deref())?;
    let mut scope = scope(args)?;
    scope.now = Some(SystemClock.now());
    let found = compile_stages(&scope, &program, &Limits::default());
    let wanted: Vec<Stage> = [Stage::Tokens, Stage::Tree, Stage::Types, Stage::Plan]
        .into_iter()
        .filter(|stage| if args.stages { *stage <= args.stage } else { *stage == args.stage })
        .collect();
    if output.json {
        let values: serde_json::Map<String, Value> =
            wanted.iter().map(|stage| (title(*stage).to_owned(), value(*stage, &program, &found))).collect();
        output.value(&json!({"stages": values, "diagnostics": found.diagnostics}));
    } else {
        for stage in wanted {
            if args.stages {
                output.line(&output.bold(&format!("── {}", title(stage))));
            }
            output.line(&text(stage, &program, &found));
        }
        if !found.diagnostics.is_empty() {
            output.notice(render_for_people(&name, &program, &found.diagnostics, output.colour()).trim_end());
        }
    }
    let errors = found.diagnostics.iter().filter(|d| Diagnostic::is_error(d)).count();
    if errors > 0 {
        let text = if errors == 1 {
            "1 mistake in the program".to_owned()
        } else {
            format!("{errors} mistakes in the program")
        };
        return Err(Failure::Found(text));
    }
    Ok(())
}

/// A program and what it is called, from a file or from standard input.
pub(super) fn program(file: Option<&Path>) -> Result<(String, String), Failure> {
    match file {
        Some(path) if path.as_os_str() != "-" => Ok((path.display().to_string(), read_text(path)?)),
        _ => {
            let mut text = String::new();
            let unreadable = |cause| Failure::Unreadable { path: "standard input".into(), cause };
            std::io::stdin().read_to_string(&mut text).map_err(unreadable)?;
            Ok(("program".to_owned(), text))
        }
    }
}

/// Everything in the demo catalog and in the folders named, as a session that was taught all of it. The other shipped ones stay
/// out: a plain `Issue` would be the name of four things.
fn scope(args: &Debug) -> Result<Scope, Failure> {
    let mut all: Vec<Arc<Catalog>> = vec![shipped::demo()?];
    all.extend(catalogs::all_of(&args.catalogs)?);
    let catalogs: BTreeMap<_, _> = all.iter().map(|c| (c.id.clone(), c.clone())).collect();
    let seeds: Vec<Seed> =
        catalogs.values().flat_map(|c| c.entities.keys().map(|entity| Seed::new(c.id.clone(), entity))).collect();
    let extended =
        Ledger::default().extend(&catalogs, &teach::TeachRequest::all(&seeds)).map_err(session::Error::from)?;
    Ok(extended.ledger.scope(&catalogs))
}

fn title(stage: Stage) -> &'static str {
    match stage {
        Stage::Tokens => "tokens",
        Stage::Tree => "tree",
        Stage::Types => "types",
        Stage::Plan => "plan",
    }
}

fn text(stage: Stage, program: &str, found: &CompilerStages) -> String {
    let unreached = || "(not reached)".to_owned();
    match stage {
        Stage::Tokens => syntax::tokens(program).iter().map(|t| token_line(program, t)).collect::<Vec<_>>().join("\n"),
        Stage::Tree => syntax::outline(&found.parsed.program),
        Stage::Types => found.checked.as_ref().map_or_else(unreached, check::outline),
        Stage::Plan => {
            found.plan.as_ref().map_or_else(unreached, |p| format!("{}\ndigest {}", plan::explain(p), p.digest))
        }
    }
}

fn token_line(program: &str, token: &syntax::Token) -> String {
    let place = format!("{}..{}", token.span.start, token.span.end);
    format!("{place:>9}  {}  {:?}", token.kind, token.span.of(program))
}

fn value(stage: Stage, program: &str, found: &CompilerStages) -> Value {
    match stage {
        Stage::Tokens => json!(syntax::tokens(program)),
        Stage::Tree => json!(found.parsed.program),
        Stage::Types => json!(found.checked.as_ref().map(check::outline)),
        Stage::Plan => json!(found.plan),
    }
}
