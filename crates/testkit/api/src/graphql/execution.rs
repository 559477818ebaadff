//! The execution of an operation: it bounds the number of fields, and it completes the result when a field fails.
//! async-graphql leaves a field that failed out of its object. The specification wants null there, and if the type forbids null, in the
//! nearest object around it that may be null (section 6.4.4). So this extension takes over every error of a field.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_graphql::async_trait::async_trait;
use async_graphql::extensions::{Extension, ExtensionContext, ExtensionFactory, NextExecute, NextResolve, ResolveInfo};
use async_graphql::{PathSegment, QueryPathNode, QueryPathSegment, Response, ServerError, ServerResult, Value};

use super::error::ErrorCode;
use super::limits::MAX_FIELDS;

/// Is set when the execution of an operation begins, which tells a request that was refused from one that was executed.
#[derive(Default, Clone)]
pub struct IsExecuted(pub Arc<AtomicBool>);

/// The extension. Each operation has a state of its own.
pub struct ExecutionRules;

impl ExtensionFactory for ExecutionRules {
    fn create(&self) -> Arc<dyn Extension> {
        Arc::new(OperationState { fields_left: AtomicUsize::new(MAX_FIELDS), failures: Mutex::default() })
    }
}

struct OperationState {
    /// How many fields the operation may still resolve.
    fields_left: AtomicUsize,
    failures: Mutex<Failures>,
}

#[derive(Default)]
struct Failures {
    /// The errors of fields, in the order in which they happened.
    errors: Vec<ServerError>,
    /// Whether `errors` has the one about the bound. Beyond the bound each further field fails in the same way, and one entry is enough.
    is_too_complex: bool,
    /// The paths of objects and lists that must be null, because a part of them is null that must not be. The empty path is `data`.
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

/// Returns the path of a field as an error shows it.
fn segments(path: &QueryPathNode<'_>) -> Vec<PathSegment> {
    let segment = |node: &QueryPathNode<'_>| match node.segment {
        QueryPathSegment::Index(index) => PathSegment::Index(index),
        QueryPathSegment::Name(name) => PathSegment::Field(name.to_owned()),
    };
    let mut segments: Vec<PathSegment> = std::iter::once(path).chain(path.parents()).map(segment).collect();
    segments.reverse();
    segments
}
