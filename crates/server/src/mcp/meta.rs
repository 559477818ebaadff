//! `_meta.plasm` of an answer.
//! Invariant: what stands in it is made elsewhere, the same for every door (`crate::plasm`).

use access::Caller;
use rmcp::model::MetaObject;
use serde_json::{Value, json};
use session::{DetachedRun, OpenedSession, PlannedProgram, RunResult};

use crate::plasm;

pub fn opened(caller: &Caller, opened: &OpenedSession) -> MetaObject {
    wrap(plasm::opened(caller, opened))
}

pub fn planned(planned: &PlannedProgram) -> MetaObject {
    wrap(plasm::planned(planned))
}

pub fn running(operation: &DetachedRun) -> MetaObject {
    wrap(plasm::running(operation))
}

pub fn ran(ran: &RunResult, lossy: &[Vec<String>]) -> MetaObject {
    wrap(plasm::ran(ran, lossy))
}

pub fn discovered(shown: usize, omitted: usize) -> MetaObject {
    wrap(json!({"discovery": {"shown": shown, "omitted": omitted}}))
}

fn wrap(plasm: Value) -> MetaObject {
    let mut meta = MetaObject::default();
    meta.0.insert("plasm".to_owned(), plasm);
    meta
}
