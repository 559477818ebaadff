//! GraphQL over HTTP: a small store at `POST /graphql`, its schema at `GET /graphql/schema`.
//! Invariants: a request that can be read is answered with 200 and `data`, `errors` or both; an operation sees one state of
//! the store from its first field to its last; nothing is resolved before the whole operation has been checked.

mod check;
mod coerce;
mod language;
mod problem;
mod run;
mod schema;

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::body;
use crate::digest::sha256;
use crate::error::Answer;
use crate::query::Asked;
use crate::state::{App, Shared};
use language::ast::{Document, Operation, OperationKind};
use problem::{Code, Problem};
use run::{Run, Source};
use schema::Schema;

const PATH: &str = "/graphql";

/// The media type of the GraphQL-over-HTTP specification, under which a refused request is no 200.
const GRAPHQL: &str = "application/graphql-response+json";

pub fn routes() -> Router<Arc<App>> {
    Router::new().route(PATH, post(serve)).route("/graphql/schema", get(sdl))
}

#[derive(Deserialize)]
struct Request {
    query: String,
    #[serde(default)]
    variables: Option<Map<String, Value>>,
    #[serde(default, rename = "operationName")]
    operation_name: Option<String>,
}

async fn sdl(asked: Asked) -> Answer {
    asked.none()?;
    Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], schema::TEXT).into_response())
}

async fn serve(State(app): Shared, asked: Asked, headers: HeaderMap, bytes: Bytes) -> Answer {
    asked.none()?;
    let request: Request = body::json(&headers, &bytes)?;
    let source = Source { path: PATH.to_owned(), body_sha256: sha256(&bytes) };
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    Ok(answer(execute(&app, &request, &source), accept.contains(GRAPHQL)))
}

/// `Err` when nothing was run.
fn execute(app: &App, request: &Request, source: &Source) -> Result<(Value, Vec<Problem>), Vec<Problem>> {
    let document = language::document(&request.query).map_err(|problem| vec![problem])?;
    let operation = choose(&document, request.operation_name.as_deref()).map_err(|problem| vec![problem])?;
    let problems = check::check(Schema::shipped(), &document, operation);
    if !problems.is_empty() {
        return Err(problems);
    }
    let given = request.variables.clone().unwrap_or_default();
    let variables = coerce::variables(Schema::shipped(), operation, &given).map_err(|problem| vec![problem])?;
    let mut run = Run::new(&document, &variables);
    let data = match operation.kind {
        OperationKind::Mutation => run.mutation(&mut app.write(), source, operation),
        _ => run.query(&app.read(), operation),
    };
    Ok((data, run.problems))
}

fn choose<'d>(document: &'d Document, name: Option<&str>) -> Result<&'d Operation, Problem> {
    let found = match name {
        Some(name) => document.operations.iter().find(|one| one.name.as_deref() == Some(name)),
        None if document.operations.len() == 1 => document.operations.first(),
        None => None,
    };
    found.ok_or_else(|| {
        let message = match name {
            Some(name) => format!("no operation `{name}` in the document"),
            None => "name one of the document's operations in `operationName`".to_owned(),
        };
        Problem::new(Code::NoOperation, message)
    })
}

fn answer(outcome: Result<(Value, Vec<Problem>), Vec<Problem>>, knows_graphql: bool) -> Response {
    let status = if outcome.is_err() && knows_graphql { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let (data, problems) = match outcome {
        Ok((data, problems)) => (Some(data), problems),
        Err(problems) => (None, problems),
    };
    let mut body = Map::new();
    if let Some(data) = data {
        body.insert("data".to_owned(), data);
    }
    if !problems.is_empty() {
        body.insert("errors".to_owned(), problems.iter().map(Problem::json).collect());
    }
    let media = if knows_graphql { GRAPHQL } else { body::JSON };
    (status, [(CONTENT_TYPE, media)], Value::Object(body).to_string()).into_response()
}
