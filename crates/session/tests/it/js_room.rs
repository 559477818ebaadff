//! What the heaps of a tenant may take.

use serde_json::json;
use session::{Pass, Retention, State};

use crate::js_house::{JsHouse, code, completed, local, named};

/// A megabyte that no other run has.
fn fills(n: usize) -> serde_json::Value {
    json!([{"set": [format!("x{n}"), format!("{n:02}").repeat(500_000)]}])
}

fn house(heaps_mb: u64) -> JsHouse {
    let mut house = JsHouse::new();
    house.settings.heaps_mb = heaps_mb;
    house.retention = Retention { grace_hours: 0, heaps: 0, ..Retention::default() };
    house
}

#[test]
fn who_has_used_up_its_room_begins_nothing_until_there_is_some() {
    let house = house(8);
    let p = house.process();
    let mut ran = 0;
    let refused = loop {
        match p.run(&named("a", fills(ran))) {
            Ok(ended) => assert_eq!(ended.state, State::Completed),
            Err(error) => break error,
        }
        ran += 1;
        assert!(ran < 20, "a quota that nobody meets");
    };
    assert!((8..=9).contains(&ran), "{ran}");
    assert_eq!(refused.code(), "no_room");
    assert!(refused.to_string().contains("of the 8 it has"), "{refused}");
    let log = p.block(p.service.session_log(&local(), &session::InSession::Named("a".into()))).unwrap();
    assert_eq!(log.len(), ran, "what was answered is there");
    // Another process knows it, too.
    let other = house.process();
    assert_eq!(other.run(&code(json!([{"get": "n"}]))).unwrap_err().code(), "no_room");
    // The collector says how it is.
    for _ in 0..3 {
        house.time.advance(std::time::Duration::from_secs(60));
        p.block(p.service.collect_garbage(Pass::default())).unwrap();
    }
    completed(p.run(&named("a", fills(99))));
    completed(other.run(&code(json!([{"get": "n"}]))));
}

#[test]
fn a_tenant_may_have_a_room_of_its_own() {
    let mut house = house(1);
    house.settings.heaps_mb_of = [(base::TenantId::local(), 0)].into();
    let p = house.process();
    for n in 0..4 {
        completed(p.run(&named("a", fills(n))));
    }
}
