//! Answers that say 200 and mean no: GraphQL's `errors`, and flags such as Slack's `ok: false`.
//! Invariant: an API's own words are kept, on one line and clipped; a code is kept apart from them.

use serde_json::Value;

use crate::model::{Capability, Catalog, Transport};

/// What the API said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the API refused: {message}")]
pub struct Refusal {
    pub message: String,
    /// The API's own word for the kind of failure, such as `NOT_FOUND`.
    pub code: Option<String>,
}

pub(super) fn find(catalog: &Catalog, capability: &Capability, body: &Value) -> Option<Refusal> {
    if let Transport::Graphql(_) = capability.transport
        && let Some(first) = body.get("errors").and_then(Value::as_array).and_then(|errors| errors.first())
    {
        let message = first.get("message").and_then(Value::as_str).unwrap_or("no message");
        let code = ["/extensions/code", "/extensions/type", "/type"];
        let code = code.iter().find_map(|path| first.pointer(path)?.as_str());
        return Some(Refusal { message: line(message), code: code.map(line) });
    }
    let failure = catalog.failure.as_ref()?;
    let failed = failure.flag.find(body).is_some_and(|flag| *flag == Value::Bool(false));
    failed.then(|| {
        let said = failure.says.find(body);
        let word = said.as_deref().and_then(Value::as_str).unwrap_or("no message");
        Refusal { message: line(word), code: Some(line(word)) }
    })
}

fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(300).collect()
}
