//! The GraphQL routes, which use `async-graphql`: the store at `POST /graphql`, and its schema as text at `GET /graphql/schema`.
//! Invariants: a request with a valid JSON body is answered with 200 and `data`, `errors` or both. Each error has a code in its extensions.
//! All fields of a query are read from one version of the store. The work of one operation is limited.

mod error;
mod execution;
mod limits;
mod mutations;
mod types;

use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};

use async_graphql::parser::parse_query;
use async_graphql::parser::types::{ExecutableDocument, OperationDefinition};
use async_graphql::{EmptySubscription, Name, Positioned, SDLExportOptions, Schema, ServerError, Variables};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use demo::{JSON, UncheckedQuery, WriteCall, parse_json, sha256};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::HandlerResult;
use crate::state::{ApiState, TestApi};
use error::{ErrorCode, error_json};
use execution::IsExecuted;
use mutations::MutationRoot;
use types::{QueryRoot, Snapshot};

const PATH: &str = "/graphql";

/// The media type of the GraphQL-over-HTTP specification. A client that accepts this type gets a 400 for a request that is not executed.
const GRAPHQL_JSON: &str = "application/graphql-response+json";

/// The deepest nesting of selections. The parser of async-graphql has a limit of 64, but fragments can exceed that limit.
const MAX_DEPTH: usize = 128;

/// The size in bytes of the stack of a thread that runs an operation.
const STACK_BYTES: usize = 32 << 20;

pub fn routes() -> Router<Arc<TestApi>> {
    Router::new().route(PATH, post(serve)).route("/graphql/schema", get(show_schema))
}

/// The schema with its resolvers. The data that the resolvers read is added to each request.
static SCHEMA: LazyLock<Schema<QueryRoot, MutationRoot, EmptySubscription>> = LazyLock::new(|| {
    Schema::build(QueryRoot, MutationRoot, EmptySubscription)
        .limit_recursive_depth(MAX_DEPTH)
        .extension(execution::ExecutionRules)
        .finish()
});

/// The JSON body of a request to `POST /graphql`.
#[derive(Deserialize)]
struct RequestBody {
    query: String,
    #[serde(default)]
    variables: Option<Map<String, Value>>,
    #[serde(default, rename = "operationName")]
    operation_name: Option<String>,
}

/// The result of a request to `POST /graphql`.
enum Outcome {
    /// The request was refused before any field was resolved.
    Refused(Vec<ServerError>),
    Executed {
        data: async_graphql::Value,
        errors: Vec<ServerError>,
    },
}

async fn show_schema(query: UncheckedQuery) -> HandlerResult {
    query.none()?;
    let options = SDLExportOptions::new().prefer_single_line_descriptions().use_space_ident().indent_width(2);
    let text = SCHEMA.sdl_with_options(options);
    Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response())
}

async fn serve(State(api): ApiState, query: UncheckedQuery, headers: HeaderMap, body: Bytes) -> HandlerResult {
    query.none()?;
    let request: RequestBody = parse_json(&headers, &body)?;
    let call = WriteCall { method: "POST".to_owned(), path: PATH.to_owned(), key: None, body_sha256: sha256(&body) };
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let outcome = execute(api, request, call).await;
    Ok(answer(outcome, accept.contains(GRAPHQL_JSON)))
}

async fn execute(api: Arc<TestApi>, body: RequestBody, call: WriteCall) -> Outcome {
    let variables = body.variables.unwrap_or_default();
    let document = match check(&body.query, body.operation_name.as_deref(), &variables) {
        Ok(document) => document,
        Err(error) => return Outcome::Refused(vec![error]),
    };
    let is_executed = IsExecuted::default();
    let snapshot = Snapshot { people: api.people.clone(), store: api.current_store() };
    let mut request = async_graphql::Request::new(body.query)
        .variables(Variables::from_json(Value::Object(variables)))
        .data(is_executed.clone())
        .data(snapshot)
        .data(call)
        .data(api.clone());
    request.operation_name = body.operation_name;
    request.set_parsed_query(document);
    let response = run_with_large_stack(SCHEMA.execute(request)).await;
    if is_executed.0.load(Ordering::Acquire) {
        Outcome::Executed { data: response.data, errors: response.errors }
    } else {
        Outcome::Refused(response.errors)
    }
}

/// Runs an operation on a new thread with a large stack. Each level of nesting takes tens of kilobytes of stack, so the deepest allowed
/// operation would overflow the stack of a thread of the runtime.
async fn run_with_large_stack(
    operation: impl Future<Output = async_graphql::Response> + Send + 'static,
) -> async_graphql::Response {
    let runtime = tokio::runtime::Handle::current();
    let (sender, response) = tokio::sync::oneshot::channel();
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    // Sending fails if the client has disconnected, because the receiver is dropped then.
    let spawned = thread.spawn(move || drop(sender.send(runtime.block_on(operation))));
    let failed =
        |reason: String| async_graphql::Response::from_errors(vec![ErrorCode::Internal.server_error(reason, None)]);
    match spawned {
        Ok(_) => response.await.unwrap_or_else(|_| failed("the operation panicked".to_owned())),
        Err(error) => failed(format!("no thread for the operation: {error}")),
    }
}

/// Makes the checks that async-graphql does not make, or whose errors in async-graphql do not show the cause.
fn check(
    text: &str,
    operation_name: Option<&str>,
    variables: &Map<String, Value>,
) -> Result<ExecutableDocument, ServerError> {
    limits::check_length(text)?;
    let document = parse_query(text).map_err(|error| {
        let error = ServerError::from(error);
        ErrorCode::ParseFailed.server_error(error.message, error.locations.first().copied())
    })?;
    let operation = choose_operation(&document, operation_name)?;
    limits::check_fragments(&document, operation)?;
    limits::check_variables(operation, variables)?;
    Ok(document)
}

fn choose_operation<'d>(
    document: &'d ExecutableDocument,
    name: Option<&str>,
) -> Result<&'d Positioned<OperationDefinition>, ServerError> {
    let mut operations = document.operations.iter();
    let chosen = match name {
        Some(wanted) => operations.find(|(name, _)| name.is_some_and(|name: &Name| name.as_str() == wanted)),
        None => operations.next().filter(|_| operations.next().is_none()),
    };
    chosen.map(|(_, operation)| operation).ok_or_else(|| {
        let message = match name {
            Some(name) => format!("no operation `{name}` in the document"),
            None => "name one of the document's operations in `operationName`".to_owned(),
        };
        ErrorCode::NoOperation.server_error(message, None)
    })
}

fn answer(outcome: Outcome, accepts_graphql_json: bool) -> Response {
    let mut body = Map::new();
    let mut status = StatusCode::OK;
    let errors: Vec<Value> = match outcome {
        Outcome::Refused(errors) => {
            if accepts_graphql_json {
                status = StatusCode::BAD_REQUEST;
            }
            errors.iter().map(|error| error_json(error, ErrorCode::ValidationFailed)).collect()
        }
        Outcome::Executed { data, errors } => {
            body.insert("data".to_owned(), data.into_json().unwrap_or_default());
            errors.iter().map(|error| error_json(error, ErrorCode::Internal)).collect()
        }
    };
    if !errors.is_empty() {
        body.insert("errors".to_owned(), errors.into());
    }
    let media_type = if accepts_graphql_json { GRAPHQL_JSON } else { JSON };
    (status, [(CONTENT_TYPE, media_type)], Value::Object(body).to_string()).into_response()
}
