//! Starts a test API for a test, with a raw HTTP client for it.

use std::ops::Deref;

use serde_json::Value;
use testkit::raw_http::RawClient;
use tokio::net::TcpListener;

/// A test API on a free loopback port, with its client. The server ends with the runtime of the test.
pub struct Served(RawClient);

impl Served {
    pub async fn start() -> Served {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(testapi::serve(listener));
        Served(RawClient { address })
    }

    pub async fn effects(&self) -> Vec<Value> {
        self.get("/control/effects").await.as_array().unwrap().clone()
    }
}

impl Deref for Served {
    type Target = RawClient;

    fn deref(&self) -> &RawClient {
        &self.0
    }
}

pub fn world() -> demo::World {
    demo::World::seeded(demo::SEED)
}

/// Returns the items of a list's page.
pub fn items(page: &Value) -> Vec<Value> {
    page["data"].as_array().unwrap().clone()
}
