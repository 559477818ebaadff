//! Starts a demo API for a test, with a record of its effects and a raw HTTP client for it.

use std::ops::Deref;
use std::sync::{Arc, Mutex};

use demo::{Tracker, WriteCall};
use serde_json::Value;
use testkit::raw_http::RawClient;
use tokio::net::TcpListener;

/// A demo API on a free loopback port, with its client. The server ends with the runtime of the test.
pub struct Served {
    pub client: RawClient,
    effects: Arc<Mutex<Vec<(WriteCall, u64)>>>,
}

impl Served {
    pub async fn start() -> Served {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let effects: Arc<Mutex<Vec<(WriteCall, u64)>>> = Arc::default();
        let log = effects.clone();
        let tracker =
            Tracker::seeded(demo::SEED).on_effect(move |call, number| log.lock().unwrap().push((call.clone(), number)));
        let router = demo::router_with(Arc::new(tracker), axum::Router::new());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Served { client: RawClient { address }, effects }
    }

    /// Returns the writes that changed data, each with its number.
    pub fn effects(&self) -> Vec<(WriteCall, u64)> {
        self.effects.lock().unwrap().clone()
    }
}

impl Deref for Served {
    type Target = RawClient;

    fn deref(&self) -> &RawClient {
        &self.client
    }
}

pub fn world() -> demo::World {
    demo::World::seeded(demo::SEED)
}

/// Returns the items of a list's page.
pub fn items(page: &Value) -> Vec<Value> {
    page["data"].as_array().unwrap().clone()
}
