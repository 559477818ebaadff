//! The type `AnswerCache`: a cache of answers for conditional requests. A cached answer is returned only after its
//! origin has confirmed it with a 304.
//!
//! Invariants:
//! - A caller gets a cached answer only after a request to its origin.
//! - A cached answer is used only for the tenant and the credential of the request that received it.
//! - An answer that sets a cookie, or that its origin forbids to store, is not cached.
//! - The number of cached answers and their memory are bounded.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use base::{Auth, Method, Origin, Response, TenantId};
use ports::upstream::Call;
use reqwest::header::{HeaderMap, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH};

use crate::answer::CACHE_MARK;
use crate::auth::Signed;

/// The largest body that is cached, in bytes.
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// The approximate memory of an entry in bytes, without its texts.
const ENTRY_OVERHEAD_BYTES: usize = 512;

/// A request with one of these headers is not cached: the caller handles caching itself or asks for a part of the answer.
const CONDITIONAL_HEADERS: [&str; 7] =
    ["if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "if-range", "range", "cache-control"];

/// The cache of answers.
pub(crate) struct AnswerCache {
    max_entries: usize,
    max_bytes: usize,
    /// Hashes credentials with a random key, so that a hash reveals nothing about the credential.
    hasher: RandomState,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    by_key: HashMap<CacheKey, Entry>,
    /// The sum of the sizes of all entries in bytes.
    bytes: usize,
    /// The number of reads and writes so far. It serves as the clock for `Entry::last_use`.
    uses: u64,
}

struct Entry {
    answer: Arc<Response>,
    /// The approximate memory of this entry in bytes.
    size: usize,
    /// The value of `Entries::uses` at the last use. The entry with the smallest value is removed first.
    last_use: u64,
}

/// The parts of a request that its answer may depend on. The key contains all headers of the request, so `Vary` needs
/// no further code.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct CacheKey {
    tenant: TenantId,
    auth: Option<Auth>,
    /// A keyed hash of the credential's value. After the value has changed, older answers are not found.
    credential: Option<u64>,
    origin: Origin,
    path: String,
    query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
}

impl AnswerCache {
    /// Returns an empty cache. If one of the bounds is zero, no answer is cached.
    pub(crate) fn new(max_entries: usize, max_bytes: usize) -> Self {
        Self { max_entries, max_bytes, hasher: RandomState::new(), entries: Mutex::default() }
    }

    /// Returns the cache key of a call, or `None` if the answer of the call must not be cached.
    pub(crate) fn key(&self, call: &Call, signed: &Signed) -> Option<CacheKey> {
        let request = &call.request;
        let is_conditional =
            |(name, _): &(String, String)| CONDITIONAL_HEADERS.iter().any(|header| name.eq_ignore_ascii_case(header));
        let is_plain_read = request.method == Method::Get && call.repeatable && request.body.is_none();
        let is_off = self.max_entries == 0 || self.max_bytes == 0;
        if !is_plain_read || is_off || request.headers.iter().any(is_conditional) {
            return None;
        }
        Some(CacheKey {
            tenant: call.tenant.clone(),
            auth: request.auth.clone(),
            credential: signed.credential.as_ref().map(|secret| self.hasher.hash_one(secret.expose())),
            origin: request.origin.clone(),
            path: request.path.clone(),
            query: request.query.clone(),
            headers: request.headers.clone(),
        })
    }

    pub(crate) fn find(&self, key: &CacheKey) -> Option<Arc<Response>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.uses += 1;
        let now = entries.uses;
        let entry = entries.by_key.get_mut(key)?;
        entry.last_use = now;
        Some(Arc::clone(&entry.answer))
    }

    /// Removes the old answer of a key, which is no longer valid, and stores the new answer if `is_cacheable` is true.
    pub(crate) fn put(&self, key: CacheKey, answer: &Response, is_cacheable: bool) {
        let header_bytes = answer.headers.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
        let size = answer.body.len() + header_bytes + key.size() + ENTRY_OVERHEAD_BYTES;
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.remove(&key);
        if !is_cacheable || answer.body.len() > MAX_BODY_BYTES || size > self.max_bytes {
            return;
        }
        while entries.by_key.len() >= self.max_entries || entries.bytes + size > self.max_bytes {
            let oldest = entries.by_key.iter().min_by_key(|(_, entry)| entry.last_use).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { return };
            entries.remove(&oldest);
        }
        entries.uses += 1;
        let last_use = entries.uses;
        entries.bytes += size;
        entries.by_key.insert(key, Entry { answer: Arc::new(answer.clone()), size, last_use });
    }
}

impl Entries {
    fn remove(&mut self, key: &CacheKey) {
        if let Some(entry) = self.by_key.remove(key) {
            self.bytes -= entry.size;
        }
    }
}

impl CacheKey {
    fn size(&self) -> usize {
        let pairs = self.query.iter().chain(&self.headers);
        self.path.len() + pairs.map(|(name, value)| name.len() + value.len()).sum::<usize>()
    }
}

/// Makes a request conditional: if the answer would equal `kept`, the origin sends a 304 without a body.
pub(crate) fn add_validators(headers: &mut HeaderMap, kept: &Response) {
    for (name, validator) in [(IF_NONE_MATCH, "etag"), (IF_MODIFIED_SINCE, "last-modified")] {
        if let Some(value) = kept.header(validator).and_then(|text| HeaderValue::from_str(text).ok()) {
            headers.insert(name, value);
        }
    }
}

/// Returns the cached answer with the new headers of the 304, such as a date or a remaining rate. Headers that describe
/// the body are taken from the cached answer, because a 304 has no body.
pub(crate) fn merge_confirmation(kept: &Response, confirmation: &Response) -> Response {
    let is_about_body = |name: &str| name.starts_with("content-") || name == "transfer-encoding";
    let new: Vec<_> = confirmation.headers.iter().filter(|(name, _)| !is_about_body(name)).cloned().collect();
    let old = kept.headers.iter().filter(|(name, _)| new.iter().all(|(new_name, _)| new_name != name)).cloned();
    let mut headers: Vec<_> = old.collect();
    headers.extend(new);
    headers.push((CACHE_MARK.to_owned(), "revalidated".to_owned()));
    Response { status: kept.status, headers, body: kept.body.clone() }
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

    fn key(cache: &AnswerCache, tenant: &str, path: &str, secret: &str) -> CacheKey {
        let (call, signed) = call(tenant, path, secret);
        cache.key(&call, &signed).unwrap()
    }

    fn answer(bytes: usize) -> Response {
        Response { status: 200, headers: vec![("etag".into(), "\"1\"".into())], body: vec![b'a'; bytes] }
    }

    #[test]
    fn tenants_credentials_and_addresses_share_no_answers() {
        let cache = AnswerCache::new(10, 10_000);
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
        let cache = AnswerCache::new(3, 10_000);
        for n in 0..20 {
            cache.put(key(&cache, "a", &format!("/{n}"), "s"), &answer(100), true);
            cache.find(&key(&cache, "a", "/0", "s"));
            assert!(cache.entries.lock().unwrap().by_key.len() <= 3);
        }
        assert!(cache.find(&key(&cache, "a", "/0", "s")).is_some(), "the entry that is used stays");
        let cache = AnswerCache::new(1000, 10_000);
        for n in 0..200 {
            cache.put(key(&cache, "a", &format!("/{n}"), "s"), &answer(n * 37 % 3000), true);
            let entries = cache.entries.lock().unwrap();
            assert!(entries.bytes <= 10_000);
            assert_eq!(entries.bytes, entries.by_key.values().map(|entry| entry.size).sum::<usize>());
        }
    }

    #[test]
    fn an_answer_that_may_not_be_kept_removes_the_older_one() {
        let cache = AnswerCache::new(10, 100_000_000);
        let key = key(&cache, "a", "/x", "s");
        for (size, is_cacheable, is_kept) in
            [(MAX_BODY_BYTES, true, true), (MAX_BODY_BYTES + 1, true, false), (1, true, true), (1, false, false)]
        {
            cache.put(key.clone(), &answer(size), is_cacheable);
            assert_eq!(cache.find(&key).is_some(), is_kept, "{size} {is_cacheable}");
        }
    }
}
