//! An extension of async-graphql for the execution of operations: it limits the number of fields, and puts null in place of failed fields.
//! async-graphql leaves a failed field out of its object. The GraphQL specification (section 6.4.4) requires null in its place or, if the
//! type forbids null, in place of the nearest enclosing object that may be null.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_graphql::async_trait::async_trait;
use async_graphql::extensions::{Extension, ExtensionContext, ExtensionFactory, NextExecute, NextResolve, ResolveInfo};
use async_graphql::{PathSegment, QueryPathNode, QueryPathSegment, Response, ServerError, ServerResult, Value};

use super::error::ErrorCode;
use super::limits::MAX_FIELDS;

/// A flag that is set when the execution of an operation begins. A request without this flag was refused before its execution.
#[derive(Default, Clone)]
pub struct IsExecuted(pub Arc<AtomicBool>);

/// The extension for async-graphql. Each operation gets its own state.
pub struct ExecutionRules;

impl ExtensionFactory for ExecutionRules {
    fn create(&self) -> Arc<dyn Extension> {
        Arc::new(OperationState { fields_left: AtomicUsize::new(MAX_FIELDS), failures: Mutex::default() })
    }
}

struct OperationState {
    /// The number of fields that the operation may still resolve.
    fields_left: AtomicUsize,
    failures: Mutex<Failures>,
}

#[derive(Default)]
struct Failures {
    /// The errors of fields, in the order in which they happened.
    errors: Vec<ServerError>,
    /// Whether `errors` has the error for too many fields. Each further field fails too, but one entry is enough.
    is_too_complex: bool,
    /// The paths of objects and lists that must be null, because they contain a failed field whose type forbids null. The empty path is
    /// that of `data`.
    nulls: BTreeSet<String>,
}

impl OperationState {
    fn failures(&self) -> MutexGuard<'_, Failures> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Extension for OperationState {
    async fn execute(
        &self,
        ctx: &ExtensionContext<'_>,
        operation_name: Option<&str>,
        next: NextExecute<'_>,
    ) -> Response {
        if let Ok(is_executed) = ctx.data::<IsExecuted>() {
            is_executed.0.store(true, Ordering::Release);
        }
        let mut response = next.run(ctx, operation_name).await;
        let mut failures = self.failures();
        response.errors.splice(..0, failures.errors.drain(..));
        if failures.nulls.contains("") {
            response.data = Value::Null;
        }
        response
    }

    async fn resolve(
        &self,
        ctx: &ExtensionContext<'_>,
        info: ResolveInfo<'_>,
        next: NextResolve<'_>,
    ) -> ServerResult<Option<Value>> {
        let path = info.path_node;
        let position = info.field.name.pos;
        let may_be_null = !info.return_type.ends_with('!');
        let take_one = |left: usize| left.checked_sub(1);
        let is_within_bound = self.fields_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take_one).is_ok();
        if is_within_bound {
            match next.run(ctx, info).await {
                Ok(value) => {
                    let failures = self.failures();
                    if failures.nulls.is_empty() || !failures.nulls.contains(&path.to_string()) {
                        return Ok(value);
                    }
                }
                Err(mut error) => {
                    if error.path.is_empty() {
                        error.path = segments(path);
                    }
                    self.failures().errors.push(error);
                }
            }
        } else {
            let mut failures = self.failures();
            if !std::mem::replace(&mut failures.is_too_complex, true) {
                let mut error =
                    ErrorCode::TooComplex.server_error(format!("more than {MAX_FIELDS} fields"), Some(position));
                error.path = segments(path);
                failures.errors.push(error);
            }
        }
        if !may_be_null {
            let parent = path.parent.map(ToString::to_string).unwrap_or_default();
            self.failures().nulls.insert(parent);
        }
        Ok(Some(Value::Null))
    }
}

/// Returns the path of a field in the form of the `path` of an error.
fn segments(path: &QueryPathNode<'_>) -> Vec<PathSegment> {
    let segment = |node: &QueryPathNode<'_>| match node.segment {
        QueryPathSegment::Index(index) => PathSegment::Index(index),
        QueryPathSegment::Name(name) => PathSegment::Field(name.to_owned()),
    };
    let mut segments: Vec<PathSegment> = std::iter::once(path).chain(path.parents()).map(segment).collect();
    segments.reverse();
    segments
}
