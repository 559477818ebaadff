//! Answers that can be asked for again cheaply: kept with their validators, and used only when their origin says that they
//! still hold.
//! Invariants: nothing is answered from here without asking the origin; an answer serves its own tenant and credential
//! only; what an origin forbids to keep, and what sets a cookie, is not kept; entries and bytes are bounded.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use base::{Auth, Method, Origin, Response, TenantId};
use ports::upstream::Call;
use reqwest::header::{HeaderMap, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH};

use crate::answer::MARK;
use crate::auth::Signed;

/// A larger body is not kept.
const BODY_BYTES: usize = 1024 * 1024;

/// What an entry costs beside its texts, about.
const OVERHEAD: usize = 512;

/// With one of these the caller handles validity itself, or wants something else than the whole answer.
const OWN: [&str; 7] =
    ["if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "if-range", "range", "cache-control"];

pub(crate) struct Cache {
    entries: usize,
    bytes: usize,
    hasher: RandomState,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    by_key: HashMap<Key, Entry>,
    bytes: usize,
    uses: u64,
}

struct Entry {
    answer: Arc<Response>,
    size: usize,
    used: u64,
}

/// Everything that an answer may depend on. Headers of the request are among it, so `Vary` needs no attention.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    tenant: TenantId,
    auth: Option<Auth>,
    /// A keyed hash of the credential's value: after a change of it nothing of before is found.
    credential: Option<u64>,
    origin: Origin,
    path: String,
    query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
}

impl Cache {
    /// Zero of either keeps nothing.
    pub(crate) fn new(entries: usize, bytes: usize) -> Self {
        Self { entries, bytes, hasher: RandomState::new(), kept: Mutex::default() }
    }

    /// `None` for a call whose answer is not kept.
    pub(crate) fn key(&self, call: &Call, signed: &Signed) -> Option<Key> {
        let request = &call.request;
        let own = |(name, _): &(String, String)| OWN.iter().any(|own| name.eq_ignore_ascii_case(own));
        let plain = request.method == Method::Get && call.repeatable && request.body.is_none();
        if !plain || self.entries == 0 || self.bytes == 0 || request.headers.iter().any(own) {
            return None;
        }
        Some(Key {
            tenant: call.tenant.clone(),
            auth: request.auth.clone(),
            credential: signed.credential.as_ref().map(|secret| self.hasher.hash_one(secret.expose())),
            origin: request.origin.clone(),
            path: request.path.clone(),
            query: request.query.clone(),
            headers: request.headers.clone(),
        })
    }

    pub(crate) fn find(&self, key: &Key) -> Option<Arc<Response>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.uses += 1;
        let now = kept.uses;
        let entry = kept.by_key.get_mut(key)?;
        entry.used = now;
        Some(Arc::clone(&entry.answer))
    }

    /// `keep`: the origin allows it.
    pub(crate) fn put(&self, key: Key, answer: &Response, keep: bool) {
        let texts = answer.headers.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
        let size = answer.body.len() + texts + key.size() + OVERHEAD;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.remove(&key);
        if !keep || answer.body.len() > BODY_BYTES || size > self.bytes {
            return;
        }
        while kept.by_key.len() >= self.entries || kept.bytes + size > self.bytes {
            let oldest = kept.by_key.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { return };
            kept.remove(&oldest);
        }
        kept.uses += 1;
        let used = kept.uses;
        kept.bytes += size;
        kept.by_key.insert(key, Entry { answer: Arc::new(answer.clone()), size, used });
    }
}

impl Kept {
    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.by_key.remove(key) {
            self.bytes -= entry.size;
        }
    }
}

impl Key {
    fn size(&self) -> usize {
        let pairs = self.query.iter().chain(&self.headers);
        self.path.len() + pairs.map(|(name, value)| name.len() + value.len()).sum::<usize>()
    }
}

/// Asks only for what differs from `known`.
pub(crate) fn ask(headers: &mut HeaderMap, known: &Response) {
    for (name, validator) in [(IF_NONE_MATCH, "etag"), (IF_MODIFIED_SINCE, "last-modified")] {
        if let Some(value) = known.header(validator).and_then(|text| HeaderValue::from_str(text).ok()) {
            headers.insert(name, value);
        }
    }
}

/// The known answer, with what its confirmation says anew (a date, what is left of a limit).
pub(crate) fn revalidated(known: &Response, confirmation: &Response) -> Response {
    let renewed = |name: &str| !name.starts_with("content-") && name != "transfer-encoding";
    let newer: Vec<_> = confirmation.headers.iter().filter(|(name, _)| renewed(name)).cloned().collect();
    let older = known.headers.iter().filter(|(name, _)| newer.iter().all(|(other, _)| other != name)).cloned();
    let mut headers: Vec<_> = older.collect();
    headers.extend(newer);
    headers.push((MARK.to_owned(), "revalidated".to_owned()));
    Response { status: known.status, headers, body: known.body.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Request, Secret};

    fn call(tenant: &str, path: &str, secret: &str) -> (Call, Signed) {
        let request = Request {
            method: Method::Get,
            origin: Origin::parse("https://x.example").unwrap(),
            path: path.into(),
            query: vec![],
            headers: vec![],
            body: None,
            anonymous: false,
            auth: Some(Auth::Bearer("T".into())),
        };
        let call = Call { tenant: TenantId::parse(tenant).unwrap(), request, repeatable: true, pace: None };
        (call, Signed { token: None, credential: Some(Secret::new(secret)), values: Vec::new() })
    }

    fn key(cache: &Cache, tenant: &str, path: &str, secret: &str) -> Key {
        let (call, signed) = call(tenant, path, secret);
        cache.key(&call, &signed).unwrap()
    }

    fn answer(bytes: usize) -> Response {
        Response { status: 200, headers: vec![("etag".into(), "\"1\"".into())], body: vec![b'a'; bytes] }
    }

    #[test]
    fn tenants_credentials_and_addresses_share_nothing() {
        let cache = Cache::new(10, 10_000);
        cache.put(key(&cache, "a", "/x", "s"), &answer(1), true);
        assert!(cache.find(&key(&cache, "a", "/x", "s")).is_some());
        for other in [("b", "/x", "s"), ("a", "/y", "s"), ("a", "/x", "t")] {
            assert!(cache.find(&key(&cache, other.0, other.1, other.2)).is_none(), "{other:?}");
        }
        let (mut plain, _) = call("a", "/x", "s");
        plain.request.auth = None;
        assert!(cache.find(&cache.key(&plain, &Signed::default()).unwrap()).is_none());
        plain.request.headers = vec![("If-None-Match".into(), "x".into())];
        assert!(cache.key(&plain, &Signed::default()).is_none());
    }

    #[test]
    fn entries_and_bytes_stay_within_their_bounds() {
        let cache = Cache::new(3, 10_000);
        for n in 0..20 {
            cache.put(key(&cache, "a", &format!("/{n}"), "s"), &answer(100), true);
            cache.find(&key(&cache, "a", "/0", "s"));
            assert!(cache.kept.lock().unwrap().by_key.len() <= 3);
        }
        assert!(cache.find(&key(&cache, "a", "/0", "s")).is_some(), "what is used stays");
        let cache = Cache::new(1000, 10_000);
        for n in 0..200 {
            cache.put(key(&cache, "a", &format!("/{n}"), "s"), &answer(n * 37 % 3000), true);
            let kept = cache.kept.lock().unwrap();
            assert!(kept.bytes <= 10_000);
            assert_eq!(kept.bytes, kept.by_key.values().map(|entry| entry.size).sum::<usize>());
        }
    }

    #[test]
    fn what_may_not_be_kept_is_not_and_takes_the_old_with_it() {
        let cache = Cache::new(10, 100_000_000);
        let key = key(&cache, "a", "/x", "s");
        for (size, keep, found) in
            [(BODY_BYTES, true, true), (BODY_BYTES + 1, true, false), (1, true, true), (1, false, false)]
        {
            cache.put(key.clone(), &answer(size), keep);
            assert_eq!(cache.find(&key).is_some(), found, "{size} {keep}");
        }
    }
}
