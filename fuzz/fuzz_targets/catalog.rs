//! Reads any text as a catalog, which succeeds or reports mistakes.
//! Invariant: nothing panics, and a catalog has the same digest when it is written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(first) = catalog::read("c.yaml", text) else { return };
    let Ok(second) = catalog::read("c.yaml", text) else { panic!("read once, refused twice") };
    assert_eq!(first.digest(), second.digest());
});
