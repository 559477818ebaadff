//! The limit on a tenant's storage for heaps.

use serde_json::json;
use session::{CollectionOptions, ExecutionState, Retention};

use crate::js_harness::{JsHarness, code, completed, local, named};

/// Returns a program that stores a megabyte which no other call stores.
fn fills(n: usize) -> serde_json::Value {
    json!([{"set": [format!("x{n}"), format!("{n:02}").repeat(500_000)]}])
}

fn house(heaps_mb: u64) -> JsHarness {
    let mut house = JsHarness::new();
    house.settings.heaps_mb = heaps_mb;
    house.retention = Retention { grace_hours: 0, heaps: 0, ..Retention::default() };
    house
}

#[test]
fn a_tenant_at_its_heap_limit_starts_no_run_until_space_is_freed() {
    let house = house(8);
    let p = house.process();
    let mut ran = 0;
    let refused = loop {
        match p.run(&named("a", fills(ran))) {
            Ok(ended) => assert_eq!(ended.state, ExecutionState::Completed),
            Err(error) => break error,
        }
        ran += 1;
        assert!(ran < 20, "a quota that nobody meets");
    };
    assert!((8..=9).contains(&ran), "{ran}");
    assert_eq!(refused.code(), "no_room");
    assert!(refused.to_string().contains("of the 8 it has"), "{refused}");
    let log = p.block(p.service.session_log(&local(), &session::SessionTarget::Named("a".into()))).unwrap();
    assert_eq!(log.len(), ran, "what was answered is there");
    // Another process knows the usage, too.
    let other = house.process();
    assert_eq!(other.run(&code(json!([{"get": "n"}]))).unwrap_err().code(), "no_room");
    // The collector writes the exact value.
    for _ in 0..3 {
        house.time.advance(std::time::Duration::from_secs(60));
        p.block(p.service.collect_garbage(CollectionOptions::default())).unwrap();
    }
    completed(p.run(&named("a", fills(99))));
    completed(other.run(&code(json!([{"get": "n"}]))));
}

#[test]
fn a_tenant_may_have_its_own_heap_limit() {
    let mut house = house(1);
    house.settings.heaps_mb_of = [(base::TenantId::local(), 0)].into();
    let p = house.process();
    for n in 0..4 {
        completed(p.run(&named("a", fills(n))));
    }
}
