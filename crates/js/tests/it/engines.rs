//! Heaps of two engines: after an upgrade, an old heap continues on the engine that made it.

use std::sync::Arc;

use js::Engine;
use ports::Scripts;
use ports::scripts::Error;
use serde_json::json;

use crate::support::{Session, engine, settings, wait};

/// Returns this build's guest with one more file in its prelude, as another build could have it.
fn other_guest() -> Vec<u8> {
    let mut guest = engine().guest().to_vec();
    let section = b"\x0ftokamak.prelude99_more.js\0globalThis.generation = 'another'";
    guest.push(0);
    guest.push(section.len() as u8);
    guest.extend_from_slice(section);
    guest
}

#[test]
fn the_name_of_an_engine_depends_on_its_guest_only() {
    let cached = Engine::start(&settings()).unwrap();
    let without_cache = js::Settings { code_cache: None, ..settings() };
    let compiled = Engine::start(&without_cache).unwrap();
    assert_eq!(cached.engine(), compiled.engine(), "from the cache and compiled now");
    assert_eq!(wait(cached.admit_engine(cached.guest().to_vec())).unwrap(), cached.engine());
    assert_ne!(wait(cached.admit_engine(other_guest())).unwrap(), cached.engine());
}

#[test]
fn an_old_heap_continues_after_an_upgrade() {
    let mut session = Session::on(Arc::new(Engine::start_with(&settings(), &other_guest()).unwrap()));
    session.run("let made = generation + ' engine'");
    let old_engine = session.engine.engine();
    let old_guest = session.engine.guest().to_vec();
    let key = session.head.unwrap();
    let chain = session.chain();

    let upgraded = Arc::new(Engine::start(&settings()).unwrap());
    let error = wait(upgraded.admit(key, chain.clone())).unwrap_err();
    assert!(matches!(error, Error::NoEngine { heap, engine } if heap == key && engine == old_engine), "{error}");
    assert_eq!(wait(upgraded.admit_engine(old_guest)).unwrap(), old_engine);
    wait(upgraded.admit(key, chain)).unwrap();
    session.engine = upgraded;
    assert_eq!(session.json("made + '!'"), json!("another engine!"));
    assert_eq!(session.last.as_ref().unwrap().heap.engine, old_engine);
    session.head = None;
    assert_eq!(session.json("typeof generation"), json!("undefined"), "new heaps belong to the new engine");
}
