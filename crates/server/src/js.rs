//! Executions, heaps and logs as JSON: the same over MCP, HTTP and on the command line.
//! Invariant: fields and their names are the wire contract (docs/heaps.md); nothing is left out that its row has.

use access::Caller;
use serde_json::{Map, Value, json};
use session::Completion;
use session::{Error, Execution, ForkedSession, HeapInfo, JsError, LogEntry, OutputPage, OutputRequest, Service};

/// The head of the output that an answer carries.
const HEAD_BYTES: u64 = 4_000;

pub const ENTRY_FIELDS: [&str; 5] = ["index", "input_heap", "output_heap", "code", "timestamp"];

/// What `get_execution` answers.
pub fn execution(execution: &Execution) -> Value {
    let mut value = json!({
        "execution_id": execution.id.to_string(),
        "status": execution.state.as_str(),
    });
    match &execution.result {
        Some(Completion::Json(result)) => value["result"] = result.clone(),
        Some(Completion::Inspected(text)) => value["result"] = json!(text),
        Some(Completion::Undefined) | None => {}
    }
    if let Some(error) = &execution.error {
        value["error"] = json!(error);
    }
    if let Some(heap) = &execution.heap {
        value["heap"] = json!(heap);
    }
    if let Some(warning) = &execution.warning {
        value["warning"] = json!(warning);
    }
    value["started_at"] = json!(execution.started.map(|at| at.to_string()));
    if let Some(ended) = execution.ended {
        value["completed_at"] = json!(ended.to_string());
    }
    if !execution.reviews.is_empty() {
        let reviews = execution.reviews.iter();
        value["reviews"] = reviews.map(|r| json!({"plan_commit_ref": r.commit, "plan": r.plan})).collect();
    }
    value
}

/// The same with the head of its output: what `run_js` answers.
pub async fn ran(service: &Service, caller: &Caller, ran: &Execution) -> Result<Value, Error> {
    let mut value = execution(ran);
    if ran.output_bytes > 0 {
        let asked = OutputRequest { byte_offset: Some(0), byte_limit: Some(HEAD_BYTES), ..OutputRequest::default() };
        let page = service.execution_output(caller, &ran.id.to_string(), &asked).await?;
        value["output"] = json!(page.data);
        if page.has_more {
            value["output_has_more"] = json!(true);
            value["output_next_byte_offset"] = json!(page.next_byte_offset);
        }
    }
    if ran.output_dropped > 0 {
        value["dropped_bytes"] = json!(ran.output_dropped);
    }
    Ok(value)
}

/// The newest ones.
pub const LISTED: usize = 50;

pub fn list(found: &[Execution]) -> Value {
    json!({"executions": found.iter().map(listed).collect::<Vec<_>>()})
}

/// One of a list: what it is, not what it came to.
fn listed(execution: &Execution) -> Value {
    let mut value = json!({
        "execution_id": execution.id.to_string(),
        "status": execution.state.as_str(),
        "started_at": execution.started.map(|at| at.to_string()),
    });
    if let Some(ended) = execution.ended {
        value["completed_at"] = json!(ended.to_string());
    }
    if let Some(session) = &execution.session {
        value["session"] = json!(session);
    }
    if let Some(heap) = &execution.heap {
        value["heap"] = json!(heap);
    }
    value
}

pub fn output(page: &OutputPage) -> Value {
    serde_json::to_value(page).unwrap_or_default()
}

/// An entry of a log with these of its fields.
pub fn entry(entry: &LogEntry, fields: &[String]) -> Value {
    let mut whole = Map::new();
    whole.insert("index".to_owned(), json!(entry.index));
    whole.insert("input_heap".to_owned(), json!(entry.input_heap));
    whole.insert("output_heap".to_owned(), json!(entry.output_heap));
    whole.insert("code".to_owned(), json!(entry.code));
    whole.insert("timestamp".to_owned(), json!(entry.timestamp.to_string()));
    if !fields.is_empty() {
        whole.retain(|name, _| fields.contains(name));
    } else if let Some(index) = entry.rewound_to {
        whole.insert("rewound_to".to_owned(), json!(index));
    }
    if entry.gone && whole.contains_key("output_heap") {
        whole.insert("heap_gone".to_owned(), json!(true));
    }
    Value::Object(whole)
}

/// The fields that a comma-separated list names.
pub fn fields(list: Option<&str>) -> Result<Vec<String>, JsError> {
    let named: Vec<String> = list.into_iter().flat_map(|list| list.split(',')).map(|f| f.trim().to_owned()).collect();
    let named: Vec<String> = named.into_iter().filter(|field| !field.is_empty()).collect();
    match named.iter().find(|field| !ENTRY_FIELDS.contains(&field.as_str())) {
        Some(bad) => Err(JsError::BadField { found: bad.chars().take(60).collect(), known: ENTRY_FIELDS.join(", ") }),
        None => Ok(named),
    }
}

pub fn heap(info: &HeapInfo) -> Value {
    serde_json::to_value(info).unwrap_or_default()
}

pub fn forked(forked: &ForkedSession) -> Value {
    json!({
        "logical_session_ref": forked.slot.to_string(),
        "logical_session_id": forked.session.to_string(),
        "heap": forked.head,
        "fenced": true,
    })
}
