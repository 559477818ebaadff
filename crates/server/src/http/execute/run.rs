//! `POST /execute/{ph}/{s}`: plan or run a program; `GET …/artifacts/{run}`: what a run left.
//! Invariant: one INFO event for each call, which says how it ended; a caller that goes away stops a run that has no handle.

use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use session::{Call, PlanRequest, RunAnswer, RunRequest, Service};

use super::accept::Form;
use super::{Address, answer};
use crate::http::auth::AsCaller;
use crate::http::body::{Kind, Queried, Raw, unsupported};
use crate::http::problem::Problem;

/// How to run it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// `run` unless given; `plan` calls nothing.
    #[serde(default)]
    mode: Mode,
    /// false: answer at once with a handle.
    #[serde(default)]
    wait: Option<bool>,
    /// Run even when the plan's verdict is review.
    #[serde(default)]
    force: bool,
    /// Run the plan that was shown under this ref.
    #[serde(default)]
    plan_commit_ref: Option<String>,
    /// With force: the same id never runs twice and answers the first result again.
    #[serde(default)]
    request_id: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Run,
    Plan,
}

/// How to run it, and the form of the answer.
pub struct Wanted {
    form: Form,
    asked: Asked,
}

impl<S: Send + Sync> FromRequestParts<S> for Wanted {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let form = Form::from_request_parts(parts, state).await?;
        let Queried(asked) = Queried::from_request_parts(parts, state).await?;
        Ok(Self { form, asked })
    }
}

/// A program as JSON; as text it is the whole body.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// In the language of the session's table; may be left out with plan_commit_ref.
    #[serde(default)]
    program: Option<String>,
}

pub async fn run(
    State(service): State<Arc<Service>>,
    AsCaller(caller): AsCaller,
    Path((prompt_hash, session)): Path<(String, String)>,
    Wanted { form, asked }: Wanted,
    body: Raw,
) -> Result<Response, Problem> {
    let program = program(body)?;
    let (started, mode) = (service.now(), asked.mode);
    let tool = if asked.mode == Mode::Plan { "execute_plan" } else { "execute" };
    let (mut call, mut of, clock) = (Call::new(tool), None, std::time::Instant::now());
    let answered = async {
        let target = service.execute_address(caller, &prompt_hash, &session).await?;
        let address = Address::of(&target.binding);
        let session = target.session.to_string();
        of = Some((target.caller.clone(), session.clone()));
        if asked.mode == Mode::Plan {
            let program = program.ok_or(session::Error::NoProgram)?;
            let planned = service.plan(&target.caller, &PlanRequest { session, program: program.clone() }).await?;
            call = std::mem::take(&mut call).with_program(&program).with_plan(&planned);
            return Ok(("planned", answer::planned(form, &planned, &program)));
        }
        let (plan_commit_ref, request_id) = (asked.plan_commit_ref, asked.request_id);
        let (force, wait) = (asked.force, asked.wait);
        let request = RunRequest { session, program, plan_commit_ref, force, request_id, wait };
        Ok(match service.run(&target.caller, &request).await? {
            RunAnswer::Finished(ran) => {
                call = std::mem::take(&mut call).with_run(&ran);
                (answer::outcome(&ran), answer::finished(form, &ran, service.limits().shown_chars))
            }
            RunAnswer::Running(operation) => ("running", answer::running(form, &operation, &address)),
        })
    };
    let answered: Result<(&str, Response), session::Error> = answered.await;
    let ms = service.now().0 - started.0;
    let outcome = answered.as_ref().map_or_else(|error| error.code(), |(outcome, _)| outcome);
    service.count_call(tool, outcome, clock.elapsed().as_secs_f64());
    if let Some((caller, session)) = of {
        // The answer goes to a program: nobody counts its tokens.
        let call = Call { at: started.0, ms, outcome: outcome.to_owned(), ..call };
        service.record(&caller, &session, (call, ""));
    }
    let session = base::printable(&session, 36);
    tracing::info!(target: "tokamak::http_execute", session, ?mode, outcome, ms, "called");
    answered.map(|(_, response)| response).map_err(|error| Problem::from(&error))
}

fn program(body: Raw) -> Result<Option<String>, Problem> {
    let empty = body.bytes.iter().all(u8::is_ascii_whitespace);
    match body.kind {
        _ if empty => Ok(None),
        Kind::Json => body.json::<Program>().map(|given| given.program),
        Kind::Text => body.text().map(Some),
        Kind::Other => Err(unsupported("application/json or text/plain")),
    }
}

pub async fn artifact(
    State(service): State<Arc<Service>>,
    AsCaller(caller): AsCaller,
    Path((prompt_hash, session, run)): Path<(String, String, String)>,
) -> Result<Json<Value>, Problem> {
    let address =
        service.execute_address(caller, &prompt_hash, &session).await.map_err(|error| Problem::from(&error))?;
    // By its number in the session, or by its id.
    let uri = match run.parse::<u64>() {
        Ok(number) => format!("plasm://session/{}/r/{number}", address.session),
        Err(_) => format!("plasm://execute/{}/{}/run/{run}", address.binding.prompt_hash, address.binding.session_id),
    };
    let artifact = service.artifact(&address.caller, &uri).await.map_err(|error| Problem::from(&error))?;
    Ok(Json(serde_json::to_value(artifact).unwrap_or_default()))
}
