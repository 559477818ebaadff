//! Reads any text as each kind of handle that a client sends: slots, ids, digests, keys of lists, URIs of results.
//! Invariant: nothing panics, and what was read and is written again reads as the same.
#![no_main]

use base::{
    CatalogId, Digest, ExecuteSessionId, ExecutionId, LogicalSessionId, Principal, RequestId, RunId, Slot, TenantId,
};
use libfuzzer_sys::fuzz_target;
use uri::ResourceUri;

/// The part of the service's errors that the parser of URIs needs.
mod error {
    #[derive(Debug)]
    pub enum Error {
        NoArtifact(#[allow(dead_code, reason = "shown by assertions")] String),
    }
}

#[path = "../../crates/session/src/uri.rs"]
mod uri;

fuzz_target!(|text: &str| {
    if let Ok(slot) = text.parse::<Slot>() {
        assert_eq!(slot.to_string().parse::<Slot>().ok(), Some(slot));
    }
    if let Ok(id) = LogicalSessionId::parse(text) {
        assert_eq!(LogicalSessionId::parse(&id.to_string()).ok(), Some(id));
    }
    if let Ok(id) = ExecutionId::parse(text) {
        assert_eq!(ExecutionId::from_newest_first_key(&id.to_newest_first_key()).ok(), Some(id));
    }
    if let Ok(id) = ExecutionId::from_newest_first_key(text) {
        let key = id.to_newest_first_key();
        assert_eq!(ExecutionId::from_newest_first_key(&key).ok(), Some(id));
    }
    let _ = (ExecuteSessionId::parse(text), RunId::parse(text));
    if let Ok(digest) = Digest::parse(text) {
        assert_eq!(Digest::parse(&digest.to_string()).ok(), Some(digest));
    }
    // A name stands in paths, in log lines and in keys of rows, whose parts are separated by `/`.
    let named = [
        TenantId::parse(text).is_ok(),
        CatalogId::parse(text).is_ok(),
        Principal::parse(text).is_ok(),
        RequestId::parse(text).is_ok(),
    ];
    if named.contains(&true) {
        assert!(!text.is_empty() && !text.contains(['/', '\\', '\n', '\0', ' ', '#']), "{text:?}");
    }
    if let Ok(uri) = ResourceUri::parse(text) {
        assert_eq!(ResourceUri::parse(text.trim()).ok(), Some(uri.clone()));
        if let (ResourceUri::Run { session, number, label: None }, Ok(slot)) =
            (&uri, uri.session().unwrap_or_default().parse::<Slot>())
        {
            assert_eq!(session.parse::<Slot>().ok(), Some(slot));
            assert_eq!(
                ResourceUri::parse(&ResourceUri::run(slot, *number)).ok(),
                Some(ResourceUri::Run { session: slot.to_string(), number: *number, label: None })
            );
            let _ = ResourceUri::plan(slot, *number);
        }
    }
});
