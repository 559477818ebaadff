//! The requests of each connection that are not answered yet.
//! Invariant: of two requests with one id only the first is under way, and no connection has more than the limit.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::Notify;

/// The requests under way. Clones share them.
#[derive(Clone)]
pub struct UnderWay {
    shared: Arc<Shared>,
}

struct Shared {
    /// The most requests of one connection.
    most: usize,
    /// The ids by connection. A connection without requests has no entry.
    ids: Mutex<HashMap<String, HashSet<String>>>,
    /// Wakes those that wait for the last answer.
    answered: Notify,
}

/// One request under way. Dropping it ends the request.
pub struct RequestUnderWay {
    shared: Arc<Shared>,
    connection: String,
    id: String,
}

/// Why a request may not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotBegun {
    /// Another request with this id is under way.
    Duplicate,
    /// As many requests are under way as may be.
    TooMany(usize),
}

impl UnderWay {
    pub fn new(most: usize) -> Self {
        Self { shared: Arc::new(Shared { most, ids: Mutex::default(), answered: Notify::new() }) }
    }

    /// Begins a request of a connection.
    pub fn begin(&self, connection: &str, id: &Value) -> Result<RequestUnderWay, NotBegun> {
        // As JSON, so that the number 1 and the text "1" are two ids.
        let id = id.to_string();
        let mut ids = self.shared.ids.lock().unwrap_or_else(PoisonError::into_inner);
        let of_connection = ids.entry(connection.to_owned()).or_default();
        if of_connection.contains(&id) {
            return Err(NotBegun::Duplicate);
        }
        // An entry that was just made is empty, and stays only if the request begins.
        if of_connection.len() >= self.shared.most {
            return Err(NotBegun::TooMany(self.shared.most));
        }
        of_connection.insert(id.clone());
        Ok(RequestUnderWay { shared: self.shared.clone(), connection: connection.to_owned(), id })
    }

    /// Waits until no request of any connection is under way.
    pub async fn wait_for_none(&self) {
        loop {
            let answered = self.shared.answered.notified();
            if self.shared.ids.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
                return;
            }
            answered.await;
        }
    }
}

impl Drop for RequestUnderWay {
    fn drop(&mut self) {
        let mut ids = self.shared.ids.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(of_connection) = ids.get_mut(&self.connection) {
            of_connection.remove(&self.id);
            if of_connection.is_empty() {
                ids.remove(&self.connection);
            }
        }
        self.shared.answered.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{NotBegun, UnderWay};

    #[tokio::test]
    async fn an_id_is_free_again_when_its_request_is_answered() {
        let under_way = UnderWay::new(2);
        let first = under_way.begin("a", &json!(1)).ok();
        assert_eq!(under_way.begin("a", &json!(1)).err(), Some(NotBegun::Duplicate));
        let other = under_way.begin("b", &json!(1));
        assert!(other.is_ok(), "each connection has its own ids");
        let text = under_way.begin("a", &json!("1")).ok();
        assert_eq!(under_way.begin("a", &json!(2)).err(), Some(NotBegun::TooMany(2)));
        drop(first);
        assert!(under_way.begin("a", &json!(1)).is_ok());
        drop((text, other));
        under_way.wait_for_none().await;
        assert!(under_way.shared.ids.lock().unwrap().is_empty());
    }
}
