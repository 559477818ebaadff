//! Any text is a catalog or is refused with mistakes.
//! Invariant: nothing panics; what was read has the same digest when it is read again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(first) = catalog::read("c.yaml", text) else { return };
    let Ok(second) = catalog::read("c.yaml", text) else { panic!("read once, refused twice") };
    assert_eq!(first.digest(), second.digest());
});
