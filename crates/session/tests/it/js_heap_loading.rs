//! Which heaps are read from storage for a step: those that the engine does not have, and no others.

use base::Digest;
use ports::Store;
use ports::store::{Batch, Expect, Table};
use serde_json::{Value, json};
use session::{ExecutionState, RunJsRequest};

use crate::js_harness::{JsHarness, Process, code, completed, value};

fn on(heap: Digest, program: Value) -> RunJsRequest {
    RunJsRequest { heap: Some(heap.to_string()), require_heap: true, ..code(program) }
}

fn lose(house: &JsHarness, p: &Process, heap: Digest) {
    let rows = house.house.store.rows();
    let (key, _) = rows.iter().find(|(key, _)| key.table == Table::Heap && key.id == heap.to_string()).unwrap();
    p.block(house.house.store.commit(Batch::default().delete(key.clone(), Expect::Any))).unwrap();
}

#[test]
fn ancestors_are_loaded_only_if_they_are_not_in_memory() {
    let house = JsHarness::new();
    let (p, other, third) = (house.process(), house.process(), house.process());
    let first = completed(p.run(&code(json!([{"set": ["x", 1]}])))).heap.unwrap();
    let second = completed(p.run(&on(first, json!([{"set": ["y", 2]}])))).heap.unwrap();
    let third_heap = completed(p.run(&on(second, json!([{"set": ["z", 3]}])))).heap.unwrap();
    assert_eq!(value(&completed(other.run(&on(first, json!([{"get": "x"}]))))), json!(1));
    // Deleted from storage, but still in the other process's engine.
    lose(&house, &p, first);
    let sum = json!([{"add": ["x", 10]}, {"get": "x"}]);
    assert_eq!(value(&completed(other.run(&on(third_heap, sum.clone())))), json!(11));
    // A process with an empty engine needs the whole chain, and reports the missing part.
    let ran = third.run(&on(third_heap, sum)).unwrap();
    let error = ran.error.unwrap();
    assert_eq!((ran.state, error.name.as_str()), (ExecutionState::Failed, "damaged_heap"));
    assert!(error.message.contains(&first.to_string()), "{error:?}");
}
