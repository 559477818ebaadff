//! `tokamak plan` and `tokamak run`.
//! Invariant: a run in which a step failed prints all that succeeded and fails; a plan that needs a review runs only when asked to.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use ::session::{CallRecord, DetachedRun, PlanRequest, RunAnswer, RunRequest, RunResult, Service};
use access::Caller;
use indicatif::ProgressBar;
use serde_json::json;

use super::{traced, with_service};
use crate::args::{Plan, Run};
use crate::config;
use crate::failure::Failure;
use crate::output::Output;

pub async fn plan(file: Option<&Path>, args: &Plan, output: &Output) -> Result<(), Failure> {
    let program = program(args)?.ok_or_else(|| Failure::Session(::session::Error::NoProgram))?;
    with_service((file, &args.work), async |service| {
        let (started, session) = (service.now(), of(&service, &args.session).await?);
        let request = PlanRequest { session: session.clone(), program: program.clone() };
        let call = CallRecord::default().with_program(&program);
        let planned = match service.plan(&Caller::local(), &request).await {
            Ok(planned) => planned,
            Err(error) => {
                traced(&service, &session, (call, started, "plan"), (error.code(), ""));
                return Err(error.into());
            }
        };
        let text = server::text::planned(&planned, &program);
        traced(&service, &session, (call.with_plan(&planned), started, "plan"), ("ok", &text));
        if output.json {
            let number = planned.number.map(|n| ::session::ResourceUri::plan(planned.slot, n));
            output.value(&json!({
                "logical_session_ref": planned.slot.to_string(),
                "dry_verdict": planned.plan.verdict,
                "plan_commit_ref": planned.commit,
                "plan_uri": number,
                "plan": planned.plan,
            }));
        } else {
            output.line(&text);
        }
        Ok(())
    })
    .await
}

pub async fn run(file: Option<&Path>, args: &Run, output: &Output) -> Result<(), Failure> {
    let program = if args.commit.is_some() && args.plan.program.is_none() && args.plan.file.is_none() {
        None
    } else {
        program(&args.plan)?
    };
    with_service((file, &args.plan.work), async |service| {
        let (started, session) = (service.now(), of(&service, &args.plan.session).await?);
        let call =
            CallRecord::default().with_program(program.as_deref().or(args.commit.as_deref()).unwrap_or_default());
        let request = RunRequest {
            session: session.clone(),
            program,
            plan_commit_ref: args.commit.clone(),
            force: args.force,
            request_id: args.request_id.clone(),
            wait: None,
        };
        let ended = match service.run(&Caller::local(), &request).await {
            Ok(RunAnswer::Running(operation)) if args.wait => wait(&service, &session, operation, output).await,
            other => other,
        };
        match ended {
            Ok(RunAnswer::Finished(ran)) => {
                let text = server::text::run(&ran, service.limits().shown_chars).text;
                traced(&service, &session, (call.with_run(&ran), started, "run"), ("ok", &text));
                print(&ran, &text, output)
            }
            Ok(RunAnswer::Running(operation)) => {
                let text = server::text::running(&operation);
                traced(&service, &session, (call, started, "run"), ("ok", &text));
                if output.json {
                    output.value(&json!({"state": "running", "handle": operation.handle}));
                } else {
                    output.line(&text);
                }
                Ok(())
            }
            Err(error) => {
                traced(&service, &session, (call, started, "run"), (error.code(), ""));
                Err(error.into())
            }
        }
    })
    .await
}

fn print(ran: &RunResult, text: &str, output: &Output) -> Result<(), Failure> {
    if output.json {
        let mut value = server::result_json(ran);
        value["artifact"] = json!(::session::ResourceUri::run(ran.slot, ran.number));
        output.value(&value);
    } else {
        output.line(text);
        if output.terminal() {
            output.notice(&format!("\n{}", ::session::ResourceUri::run(ran.slot, ran.number)));
        }
    }
    let failed = ran.outcome.returns.iter().filter(|r| r.result.is_err()).count();
    if failed == 0 {
        Ok(())
    } else {
        Err(Failure::Found(format!("{failed} of {} results failed", ran.outcome.returns.len())))
    }
}

/// Asks again until there is a result, and says how far it is to whoever looks.
async fn wait(
    service: &Arc<Service>,
    session: &str,
    mut operation: DetachedRun,
    output: &Output,
) -> Result<RunAnswer, ::session::Error> {
    let bar = if output.terminal() && !output.json { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
    loop {
        bar.set_message(format!(
            "{} · step {} of {}",
            operation.handle, operation.progress.steps_done, operation.progress.steps
        ));
        bar.tick();
        let program = Some(format!("wait({})", operation.handle));
        let request = RunRequest { session: session.to_owned(), program, ..RunRequest::default() };
        match service.run(&Caller::local(), &request).await? {
            RunAnswer::Running(again) => operation = again,
            finished => {
                bar.finish_and_clear();
                return Ok(finished);
            }
        }
    }
}

/// The session that is meant, by its id: a slot and an intent lead to it as well.
async fn of(service: &Service, reference: &str) -> Result<String, Failure> {
    let id = service.session_id(&Caller::local(), reference).await.map_err(|error| match error {
        ::session::Error::UnknownSlot { .. } if reference == "s0" => Failure::Usage(
            "there is no session yet; open one first: tokamak context \"the task\" --seed demo:Ticket".to_owned(),
        ),
        other => other.into(),
    })?;
    Ok(id.to_string())
}

fn program(args: &Plan) -> Result<Option<String>, Failure> {
    match (&args.program, &args.file) {
        (Some(program), _) => Ok(Some(program.clone())),
        (None, Some(path)) if path != Path::new("-") => config::read_text(path).map(Some),
        _ => {
            let mut bytes = Vec::new();
            let from = Path::new("standard input");
            let unreadable = |cause| Failure::Unreadable { path: from.to_owned(), cause };
            std::io::stdin().read_to_end(&mut bytes).map_err(unreadable)?;
            config::text_of(from, bytes).map(Some)
        }
    }
}
