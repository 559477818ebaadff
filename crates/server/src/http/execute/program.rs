//! `POST /execute/{ph}/{s}`: plans or runs a program. `GET …/artifacts/{run}`: the stored result of a run.
//! Invariant: a client that closes the connection stops a run that has no handle.

use app::calls::{ArtifactContent, Plasm, PlasmRun, ReadArtifact};
use app::{Context, EntryPoint, Error, ExecuteMode};
use axum::Json;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use session::{Artifact, RunAnswer};

use super::accept::AnswerFormat;
use super::{Address, answer};
use crate::http::HttpState;
use crate::http::auth::HttpCall;
use crate::http::body::{BodyKind, QueryOf, RawBody, unsupported_content_type};
use crate::http::problem::Problem;

/// How to run a program.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunQuery {
    /// `run` by default. `plan` calls no API.
    #[serde(default)]
    mode: Mode,
    /// false: answer at once with a handle.
    #[serde(default)]
    wait: Option<bool>,
    /// Run a plan that needs a review without one.
    #[serde(default)]
    force: bool,
    /// The plan commit of the plan to run.
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

/// The query, and the format of the answer. A request with an unknown format is refused before anything runs.
pub struct RunOptions {
    /// The format that `Accept` names.
    format: AnswerFormat,
    query: RunQuery,
}

impl<S: Send + Sync> FromRequestParts<S> for RunOptions {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let format = AnswerFormat::from_request_parts(parts, state).await?;
        let QueryOf(query) = QueryOf::from_request_parts(parts, state).await?;
        Ok(Self { format, query })
    }
}

/// A program as JSON. As text, the program is the whole body.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// A program in the language of the session's table. It may be left out with plan_commit_ref.
    #[serde(default)]
    program: Option<String>,
}

/// Answers `POST /execute/{ph}/{s}`.
pub async fn run(
    State(state): State<HttpState>,
    HttpCall(context): HttpCall,
    Path((prompt_hash, session)): Path<(String, String)>,
    RunOptions { format, query }: RunOptions,
    body: RawBody,
) -> Result<Response, Problem> {
    let program = read_program(body)?;
    let mode = match query.mode {
        Mode::Run => ExecuteMode::Run,
        Mode::Plan => ExecuteMode::Plan,
    };
    let context = Context { entry: EntryPoint::Execute(mode), ..context };
    let target = match state.app.execute_address(context.caller.clone(), &prompt_hash, &session).await {
        Ok(target) => target,
        Err(error) => {
            // Counted and logged like a call, because the client meant one.
            state.app.refuse::<PlasmRun>(&context, &error);
            return Err(error.into());
        }
    };
    let address = Address::new(&target.binding);
    // From here on the caller is at the session's own address, where the session is `s0`.
    let context = Context { caller: target.caller, ..context };
    let logical_session_ref = target.session.to_string();
    if mode == ExecuteMode::Plan {
        let Some(program) = program else {
            let error = Error::from(session::Error::NoProgram);
            state.app.refuse::<Plasm>(&context, &error);
            return Err(error.into());
        };
        let request = Plasm { logical_session_ref, program: program.clone(), reasoning: None };
        let planned = state.app.call(&context, request).await?;
        return Ok(answer::planned(format, &planned, &program));
    }
    let request = PlasmRun {
        logical_session_ref,
        program,
        reasoning: None,
        plan_commit_ref: query.plan_commit_ref,
        force: query.force,
        request_id: query.request_id,
        wait: query.wait,
    };
    match state.app.call(&context, request).await? {
        RunAnswer::Finished(run) => Ok(answer::finished(format, &run, state.app.service().limits().shown_chars)),
        RunAnswer::Running(operation) => Ok(answer::running(format, &operation, &address)),
    }
}

/// Reads the program from a body of JSON or text. `None` for a body without a program.
fn read_program(body: RawBody) -> Result<Option<String>, Problem> {
    if body.bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    match body.kind {
        BodyKind::Json => body.json::<Program>().map(|body| body.program),
        BodyKind::Text => body.text().map(Some),
        BodyKind::Other => Err(unsupported_content_type("application/json or text/plain")),
    }
}

/// Answers `GET …/artifacts/{run}`.
pub async fn read_artifact(
    State(state): State<HttpState>,
    HttpCall(context): HttpCall,
    Path((prompt_hash, session, run)): Path<(String, String, String)>,
) -> Result<Json<Artifact>, Problem> {
    let address = state.app.execute_address(context.caller.clone(), &prompt_hash, &session).await?;
    // A run has a number within its session, and an id.
    let uri = match run.parse::<u64>() {
        Ok(number) => format!("plasm://session/{}/r/{number}", address.session),
        Err(_) => format!("plasm://execute/{}/{}/run/{run}", address.binding.prompt_hash, address.binding.session_id),
    };
    let context = Context { caller: address.caller, ..context };
    match state.app.call(&context, ReadArtifact::whole(uri)).await? {
        ArtifactContent::Artifact(artifact) => Ok(Json(*artifact)),
        // The URIs above name runs, whose content is always an artifact.
        ArtifactContent::Plan(_) | ArtifactContent::Heap(_) => Err(Problem::internal()),
    }
}
