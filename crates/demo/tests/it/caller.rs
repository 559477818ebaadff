//! Calls the capabilities of a catalog on a served API in the same way as a session: builds the request, sends it, and decodes the answer.
//! The tests of `testapi` use this file too.

use std::collections::BTreeSet;

use base::{Payload, Response};
use catalog::{
    Args, BindInput, Capability, Catalog, DecodeInput, Decoded, NextPage, PagePosition, PageRequest, RequestedPage,
    Row, RowWindow, bind, decode,
};
use serde_json::Value;
use testkit::raw_http::JSON;

use crate::served::Served;

pub struct Caller {
    served: Served,
    catalog: Catalog,
    /// The names of the capabilities that were called.
    called: BTreeSet<String>,
    /// The fields that the caller needs. `None` means all fields.
    pub fields: Option<Vec<String>>,
}

impl Caller {
    /// Starts an API and reads its catalog.
    pub async fn start(path: &str) -> Caller {
        let text = std::fs::read_to_string(path).unwrap();
        let catalog = catalog::read(path, &text).unwrap();
        Caller { served: Served::start().await, catalog, called: BTreeSet::new(), fields: None }
    }

    /// Returns all rows of a capability, over all pages.
    pub async fn call(&mut self, name: &str, args: Value) -> Vec<Row> {
        self.called.insert(name.to_owned());
        let capability = self.catalog.capability(name).unwrap();
        let args: Args = serde_json::from_value(args).unwrap();
        let mut page = capability.paging.as_ref().map(|_| PageRequest { at: PagePosition::First, size: 50 });
        let mut rows = Vec::new();
        loop {
            let decoded = self.call_once(capability, &args, page.as_ref(), rows.len()).await;
            rows.extend(decoded.rows);
            match (decoded.next, &mut page) {
                (NextPage::At(at), Some(page)) => page.at = at,
                (next, _) => {
                    assert_eq!(next, NextPage::End, "{name}");
                    return rows;
                }
            }
        }
    }

    async fn call_once(
        &self,
        capability: &Capability,
        args: &Args,
        page: Option<&PageRequest>,
        rows_before: usize,
    ) -> Decoded {
        let key = format!("{}-1", capability.name);
        let input = BindInput { args, page, fields: self.fields.as_deref(), idempotency_key: Some(&key) };
        let request = bind(&self.catalog, capability, &input).unwrap();
        let pairs: Vec<String> =
            request.query.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
        let target = format!("{} {}?{}", request.method.as_str(), request.path, pairs.join("&"));
        let mut headers: Vec<(&str, &str)> =
            request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let body = match &request.body {
            Some(Payload::Json { value, .. }) => value.to_string(),
            _ => String::new(),
        };
        headers.extend((!body.is_empty()).then_some(JSON));
        let reply = self.served.ask(&target, &headers, body.as_bytes()).await;
        assert!((200..300).contains(&reply.status), "{target}: {}", reply.text());
        let response = Response { status: reply.status, headers: Vec::new(), body: reply.body };
        let page = page.map(|page| RequestedPage { page, rows_before });
        let input = DecodeInput { response: &response, args, page, max_depth: 64, window: RowWindow::ALL };
        decode(&self.catalog, capability, &input).unwrap()
    }

    /// Panics unless every capability of the catalog was called.
    pub fn assert_all_called(&self) {
        let all: BTreeSet<String> = self.catalog.capabilities.keys().cloned().collect();
        assert_eq!(self.called, all);
    }
}

fn encode(text: &str) -> String {
    text.replace('%', "%25").replace('&', "%26").replace(' ', "%20")
}
