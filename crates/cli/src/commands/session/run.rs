//! `tokamak plan` and `tokamak run`: print the plan of a program, and run a program.
//! Invariant: if a step fails, the command prints the results of the other steps and then fails. A plan that needs a review runs only
//! with `--commit` or `--force`.

use std::io::Read;
use std::path::Path;

use app::calls::{Plasm, PlasmRun, WatchOperation};
use app::{App, Context, Rendered};
use indicatif::ProgressBar;
use serde_json::json;
use session::{DetachedRun, ResourceUri, RunAnswer, RunResult};

use super::{call_with_text, session_id, with_app};
use crate::args::{PlanArgs, RunArgs, Settings};
use crate::config;
use crate::failure::Failure;
use crate::output::Output;

pub async fn plan(config_file: Option<&Path>, args: &PlanArgs, output: &Output) -> Result<(), Failure> {
    let program = read_program(args)?;
    with_app(config_file, Settings::from(&args.service), async |app| {
        let logical_session_ref = session_to_use(&app, &args.session).await?;
        let request = Plasm { logical_session_ref, program: program.clone(), reasoning: None };
        let as_text = |planned: &_| server::text::planned(planned, &program);
        let Rendered { value: planned, text } = call_with_text(&app, "plan", request, as_text).await?;
        if output.json {
            output.value(&json!({
                "logical_session_ref": planned.slot.to_string(),
                "dry_verdict": planned.plan.verdict,
                "plan_commit_ref": planned.commit,
                "plan_uri": planned.number.map(|number| ResourceUri::plan(planned.slot, number)),
                "plan": planned.plan,
            }));
        } else {
            output.line(&text);
        }
        Ok(())
    })
    .await
}

pub async fn run(config_file: Option<&Path>, args: &RunArgs, output: &Output) -> Result<(), Failure> {
    let has_program = args.plan.program.is_some() || args.plan.file.is_some();
    // With a commit and no program, standard input is not read: it may be a terminal, or belong to a script.
    let program = if args.commit.is_some() && !has_program { None } else { Some(read_program(&args.plan)?) };
    with_app(config_file, Settings::from(&args.plan.service), async |app| {
        let logical_session_ref = session_to_use(&app, &args.plan.session).await?;
        let request = PlasmRun {
            logical_session_ref: logical_session_ref.clone(),
            program,
            plan_commit_ref: args.commit.clone(),
            force: args.force,
            request_id: args.request_id.clone(),
            ..PlasmRun::default()
        };
        let mut answer = call_run(&app, request).await?;
        if let (RunAnswer::Running(operation), true) = (&answer.value, args.wait) {
            answer = wait_for_end(&app, &logical_session_ref, operation.clone(), output).await?;
        }
        match answer.value {
            RunAnswer::Finished(run) => print_result(&run, &answer.text, output),
            RunAnswer::Running(operation) => {
                let value = json!({"state": "running", "handle": operation.handle});
                output.value_or_line(&value, &answer.text);
                Ok(())
            }
        }
    })
    .await
}

async fn call_run(app: &App, request: PlasmRun) -> Result<Rendered<RunAnswer>, Failure> {
    let shown_chars = app.service().limits().shown_chars;
    let as_text = |answer: &RunAnswer| match answer {
        RunAnswer::Finished(run) => server::text::run(run, shown_chars).text,
        RunAnswer::Running(operation) => server::text::running(operation),
    };
    call_with_text(app, "run", request, as_text).await
}

/// Waits until a run that continues in the background ends, and shows its progress on a terminal.
async fn wait_for_end(
    app: &App,
    session: &str,
    mut operation: DetachedRun,
    output: &Output,
) -> Result<Rendered<RunAnswer>, Failure> {
    let bar = if output.terminal() && !output.json { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
    loop {
        let handle = operation.handle.clone();
        bar.set_message(format!("{handle} · step {} of {}", operation.progress.steps_done, operation.progress.steps));
        bar.tick();
        let watch = WatchOperation { session: session.to_owned(), handle: handle.clone(), last_seen: Some(operation) };
        if let Ok(RunAnswer::Running(changed)) = app.call(&Context::command("watch_operation"), watch).await {
            operation = changed;
            continue;
        }
        // The run has ended or failed. Its answer is requested again with `wait`, because a trace lists runs but not watches.
        let request = PlasmRun {
            logical_session_ref: session.to_owned(),
            program: Some(format!("wait({handle})")),
            ..PlasmRun::default()
        };
        let answer = call_run(app, request).await?;
        match &answer.value {
            RunAnswer::Running(unfinished) => operation = unfinished.clone(),
            RunAnswer::Finished(_) => {
                bar.finish_and_clear();
                return Ok(answer);
            }
        }
    }
}

fn print_result(run: &RunResult, text: &str, output: &Output) -> Result<(), Failure> {
    let artifact = ResourceUri::run(run.slot, run.number);
    if output.json {
        let mut value = server::result_json(run);
        value["artifact"] = json!(artifact);
        output.value(&value);
    } else {
        output.line(text);
        if output.terminal() {
            output.notice(&format!("\n{artifact}"));
        }
    }
    let failed = run.outcome.returns.iter().filter(|returned| returned.result.is_err()).count();
    if failed == 0 {
        Ok(())
    } else {
        Err(Failure::Found(format!("{failed} of {} results of the program failed", run.outcome.returns.len())))
    }
}

/// Returns the id of the session for a program. If the session is `s0` and does not exist, the error explains how to open a session.
async fn session_to_use(app: &App, reference: &str) -> Result<String, Failure> {
    match session_id(app, reference).await {
        Err(Failure::Call(app::Error::Session(session::Error::UnknownSlot { .. }))) if reference == "s0" => {
            let hint = "there is no session yet; open one first: tokamak context \"the task\" --seed demo:Ticket";
            Err(Failure::Usage(hint.to_owned()))
        }
        result => result,
    }
}

/// Reads the program from the argument, from the file, or else from standard input.
fn read_program(args: &PlanArgs) -> Result<String, Failure> {
    match (&args.program, &args.file) {
        (Some(program), _) => Ok(program.clone()),
        (None, Some(path)) if path != Path::new("-") => config::read_text(path),
        _ => {
            let mut bytes = Vec::new();
            let path = Path::new("standard input");
            let unreadable = |cause| Failure::Unreadable { path: path.to_owned(), cause };
            std::io::stdin().read_to_end(&mut bytes).map_err(unreadable)?;
            config::decode_text(path, bytes)
        }
    }
}
