//! What is read from storage to stand on a heap: what the engine does not have, and no more.

use base::Digest;
use ports::Store;
use ports::store::{Batch, Expect, Table};
use serde_json::{Value, json};
use session::{RunJs, State};

use crate::js_house::{JsHouse, Process, code, completed, value};

fn on(heap: Digest, program: Value) -> RunJs {
    RunJs { heap: Some(heap.to_string()), require_heap: true, ..code(program) }
}

fn lose(house: &JsHouse, p: &Process, heap: Digest) {
    let rows = house.house.store.rows();
    let (key, _) = rows.iter().find(|(key, _)| key.table == Table::Heap && key.id == heap.to_string()).unwrap();
    p.block(house.house.store.commit(Batch::default().delete(key.clone(), Expect::Any))).unwrap();
}

#[test]
fn what_a_heap_stands_on_is_read_only_where_it_is_not_there() {
    let house = JsHouse::new();
    let (p, other, third) = (house.process(), house.process(), house.process());
    let first = completed(p.run(&code(json!([{"set": ["x", 1]}])))).heap.unwrap();
    let second = completed(p.run(&on(first, json!([{"set": ["y", 2]}])))).heap.unwrap();
    let third_heap = completed(p.run(&on(second, json!([{"set": ["z", 3]}])))).heap.unwrap();
    assert_eq!(value(&completed(other.run(&on(first, json!([{"get": "x"}]))))), json!(1));
    // Gone from storage, and still in the engine of the other process.
    lose(&house, &p, first);
    let sum = json!([{"add": ["x", 10]}, {"get": "x"}]);
    assert_eq!(value(&completed(other.run(&on(third_heap, sum.clone())))), json!(11));
    // A process that has nothing of it needs all of it, and says what it misses.
    let ran = third.run(&on(third_heap, sum)).unwrap();
    let error = ran.error.unwrap();
    assert_eq!((ran.state, error.name.as_str()), (State::Failed, "damaged_heap"));
    assert!(error.message.contains(&first.to_string()), "{error:?}");
}
